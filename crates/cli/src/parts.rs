//! Flags that say which controllers, scheduler and nodes there are, for the verbs that run them.

use std::path::PathBuf;

use homeostat_cluster::ClusterOptions;

use crate::complaint::Complaint;
use crate::files::{read, wrong};

/// What runs, and how.
#[derive(clap::Args)]
pub(crate) struct Parts {
    /// What each node has, instead of 32 processors, 128Gi and 110 pods: such as cpu=8,memory=32Gi,nvidia.com/gpu=8
    #[arg(long, default_value = "", value_name = "LIST", hide_default_value = true)]
    node_capacity: String,
    /// Labels of the nodes; several values go round: such as topology.kubernetes.io/zone=a|b|c
    #[arg(long, default_value = "", value_name = "LIST", hide_default_value = true)]
    node_labels: String,
    /// Controllers to run: '*' all, 'name' one, '-name' not that one; 'scheduler' is one of them
    #[arg(long, default_value = "*", value_name = "LIST", allow_hyphen_values = true)]
    controllers: String,
    /// How the scheduler decides: a kubescheduler.config.k8s.io/v1 KubeSchedulerConfiguration
    #[arg(long, value_name = "FILE")]
    scheduler_config: Option<PathBuf>,
}

impl Parts {
    /// Options with this, and so many nodes.
    pub(crate) fn options(&self, nodes: usize) -> Result<ClusterOptions, Complaint> {
        let mut options = ClusterOptions::default();
        options.nodes(nodes, &self.node_capacity, &self.node_labels)?;
        options.controllers(&self.controllers)?;
        if let Some(file) = &self.scheduler_config {
            let yaml = read(file, "a KubeSchedulerConfiguration")?;
            options.scheduler(&yaml).map_err(|e| wrong(file, e))?;
        }
        Ok(options)
    }
}
