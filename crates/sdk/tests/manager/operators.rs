//! Operators for the tests. All reconcile ServiceAccounts, and differ in what they do.

use std::sync::{Arc, Mutex};

use homeostat_sdk::{Context, Next, Operator, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};

/// Keeps a ConfigMap per account with the value of the Secret of the same name.
pub(crate) struct Copy;

impl Operator for Copy {
    type Resource = ServiceAccount;
    type Owns = (ConfigMap,);
    type Reads = (Secret,);

    async fn reconcile(&self, account: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
        let secret = cx.read::<Secret, _>(cx.name());
        let value = secret.and_then(|s| s.type_.clone()).unwrap_or_else(|| "none".into());
        let mut map = ConfigMap::default();
        map.metadata.name = account.metadata.name.clone();
        map.data = Some([("value".to_owned(), value)].into());
        cx.apply(map).await?;
        Ok(Next::done())
    }
}

type Body = dyn Fn(&ServiceAccount) -> Result<Next> + Send + Sync;

/// Notes the names it is called with, and does as the test says.
#[derive(Clone)]
pub(crate) struct Note {
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    body: Arc<Body>,
}

impl Note {
    pub(crate) fn new(body: impl Fn(&ServiceAccount) -> Result<Next> + Send + Sync + 'static) -> Self {
        Self { seen: Arc::default(), body: Arc::new(body) }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Operator for Note {
    type Resource = ServiceAccount;
    type Owns = (ConfigMap,);
    type Reads = ();

    async fn reconcile(&self, account: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
        self.seen.lock().unwrap().push(cx.name().to_owned());
        (self.body)(account)
    }

    async fn absent(&self, key: &homeostat_sdk::Key, _: &Context<Self>) -> Result<Next> {
        self.seen.lock().unwrap().push(format!("absent {key}"));
        Ok(Next::done())
    }
}
