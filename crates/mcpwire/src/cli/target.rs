//! The target of a command.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use mcpwire_proto::conversation::Config;

use super::address::{Address, address};
use super::reach::ReachArgs;
use crate::target::Target;

/// One target, and how to deal with it.
#[derive(Debug, ClapArgs)]
pub(super) struct TargetArgs {
    /// Where the server is: an http:// or https:// URL, unix:PATH for a socket, a folder, quic://HOST:PORT for an Orchestra
    /// orchestrator, or quic+mcp://HOST:PORT for MCP over QUIC
    #[arg(value_name = "TARGET", value_parser = address, conflicts_with = "command",
        required_unless_present_any = ["command", "mcp_hub", "orchestrator_addr"])]
    target: Option<Address>,
    #[command(flatten)]
    pub(super) reach: ReachArgs,
}

impl TargetArgs {
    /// Reads the files and variables that the arguments name.
    pub(super) fn target(&self) -> Result<Target> {
        match &self.target {
            Some(address) => self.reach.target(address),
            None => self.reach.named_by_flags()?.context("expected a target"),
        }
    }

    /// How a conversation with the target behaves.
    pub(super) fn config(&self, target: &Target) -> Result<Config> {
        self.reach.config(target)
    }
}
