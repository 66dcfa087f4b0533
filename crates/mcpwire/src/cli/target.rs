//! The target of a command.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use mcpwire_proto::conversation::Config;

use super::address::{Address, address};
use super::configured::ConfigArgs;
use super::reach::ReachArgs;
use crate::target::Target;

/// One target, and how to deal with it.
#[derive(Debug, ClapArgs)]
pub(super) struct TargetArgs {
    /// Where the server is: an http:// or https:// URL, unix:PATH for a socket, a folder, quic://HOST:PORT for an Orchestra
    /// orchestrator, quic+mcp://HOST:PORT for MCP over QUIC, or the name of a configured server
    #[arg(value_name = "TARGET", value_parser = address, conflicts_with = "command",
        required_unless_present_any = ["command", "mcp_hub", "orchestrator_addr"])]
    target: Option<Address>,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    pub(super) reach: ReachArgs,
}

impl TargetArgs {
    /// The target, and how a conversation with it behaves. Reads the files and variables that the arguments name.
    pub(super) fn open(&self) -> Result<(Target, Config)> {
        let target = match &self.target {
            Some(Address::Named(name)) => return self.config.target(name, &self.reach),
            Some(address) => self.reach.target(address)?,
            None => self.reach.named_by_flags()?.context("expected a target")?,
        };
        let config = self.reach.config(&target)?;
        Ok((target, config))
    }
}
