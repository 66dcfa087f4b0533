//! `mcpwire ping`: how long a server takes to answer.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::json;

use super::{AskArgs, explained, print};
use crate::cli::units::duration;

/// Ask a server whether it is there, and how long that takes
///
/// The time to connect and shake hands is told apart. Exit codes as of `mcpwire tools`.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    ask: AskArgs,
    /// How often
    #[arg(short = 'n', long, value_name = "TIMES", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// How long to wait between two
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "200ms")]
    interval: Duration,
}

pub(in crate::cli) fn run(args: &Args) -> Result<ExitCode> {
    let start = Instant::now();
    args.ask.run(async |session| {
        let connected = start.elapsed();
        if !args.ask.json {
            print(&format!("connected in {}\n", shown(connected)))?;
        }
        let mut times = Vec::new();
        for number in 1..=args.count {
            if number > 1 {
                tokio::time::sleep(args.interval).await;
            }
            let asked = Instant::now();
            session.client.ping().await.map_err(explained)?;
            times.push(asked.elapsed());
            if !args.ask.json {
                print(&format!("{number}: {}\n", shown(asked.elapsed())))?;
            }
        }
        times.sort_unstable();
        let (least, middle, most) = (times[0], percentile(&times, 50), times[times.len() - 1]);
        if args.ask.json {
            let all: Vec<f64> = times.iter().copied().map(millis).collect();
            let told = json!({
                "connect": millis(connected), "min": millis(least), "p50": millis(middle), "max": millis(most), "pings": all, "unit": "ms",
            });
            print(&format!("{told}\n"))?;
        } else {
            print(&format!("least {}, median {}, most {}\n", shown(least), shown(middle), shown(most)))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Of sorted times, the one that this share is not above.
pub(in crate::cli) fn percentile(times: &[Duration], percent: usize) -> Duration {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or_default()
}

pub(in crate::cli) fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

pub(in crate::cli) fn shown(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
