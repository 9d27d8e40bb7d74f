//! `homeostat completion`: what a shell needs to complete the verbs and their flags.

use clap::CommandFactory as _;
use clap_complete::Shell;

/// Flags of `completion`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  source <(homeostat completion bash)")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &Args) {
    let mut command = crate::Cli::command();
    clap_complete::generate(args.shell, &mut command, "homeostat", &mut std::io::stdout());
}
