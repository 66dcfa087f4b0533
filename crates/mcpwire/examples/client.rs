//! Lists the tools of a server, or calls one of them: `client URL|FOLDER [TOOL [ARGUMENTS]]`, the arguments in JSON.

use std::error::Error;
use std::io::{self, Write};

use mcpwire::client::{Client, Options, RequestOptions, content};
use mcpwire::target::Target;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().ok_or("expected a URL or a folder")?;
    let target = if address.contains("://") { Target::http(address.parse()?) } else { Target::folder(address)? };
    let client = Client::connect(target, Options::default()).await?;
    match args.next() {
        None => {
            for tool in client.list_tools().await? {
                writeln!(io::stdout(), "{}: {}", tool.name, tool.description.as_deref().unwrap_or_default())?;
            }
        }
        Some(tool) => {
            let arguments: Value = args.next().map_or(Ok(json!({})), |text| serde_json::from_str(&text))?;
            let result = client.call_tool(&tool, arguments, RequestOptions::default()).await?;
            writeln!(io::stdout(), "{}", content::text(&result))?;
        }
    }
    client.close().await;
    Ok(())
}
