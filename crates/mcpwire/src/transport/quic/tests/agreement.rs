//! `proto/plugin.proto` and the messages in Rust say the same: every field that the one describes, the other knows under the
//! same number and type.

use std::collections::BTreeMap;

use prost::Message;

use crate::transport::quic::proto::*;

const DESCRIPTION: &str = include_str!("../../../../proto/plugin.proto");

/// Decodes and encodes again; what a message does not know is lost on the way.
type There = fn(&[u8]) -> Result<Vec<u8>, prost::DecodeError>;

fn again<M: Message + Default>(bytes: &[u8]) -> Result<Vec<u8>, prost::DecodeError> {
    Ok(M::decode(bytes)?.encode_to_vec())
}

macro_rules! messages {
    ($($name:ident)*) => { BTreeMap::from([$((stringify!($name), again::<$name> as There)),*]) };
}

fn ours() -> BTreeMap<&'static str, There> {
    messages! {
        PluginRequest PluginResponse PluginManifest RegistrationResult BootRequest BootResult ShutdownRequest
        ShutdownResult HealthRequest HealthResult ToolRequest ToolResponse ListToolsRequest ListToolsResponse
        ToolDefinition ListPromptsRequest ListPromptsResponse PromptDefinition PromptArgument PromptGetRequest
        PromptGetResponse PromptMessage PromptContent StorageReadRequest StorageReadResponse StorageWriteRequest
        StorageWriteResponse StorageDeleteRequest StorageDeleteResponse StorageListRequest StorageListResponse
        StorageEntry StreamStart StreamCancel StreamChunk StreamEnd Subscribe Unsubscribe Publish
    }
}

struct Field {
    name: String,
    kind: String,
    repeated: bool,
    number: u8,
}

/// The messages of the description: it is plain enough to be read line by line.
fn described() -> BTreeMap<String, Vec<Field>> {
    let mut messages = BTreeMap::new();
    let mut current: Option<(String, Vec<Field>)> = None;
    for line in DESCRIPTION.lines().map(|line| line.split("//").next().unwrap_or_default().trim()) {
        if let Some(rest) = line.strip_prefix("message ") {
            // A message ends where the next begins.
            messages.extend(current.take());
            let (name, _) = rest.split_once(' ').unwrap();
            current = Some((name.to_owned(), Vec::new()));
        } else if let Some((left, number)) = line.strip_suffix(';').and_then(|line| line.split_once(" = ")) {
            let Some((_, fields)) = &mut current else { continue };
            let (kind, name) = left.rsplit_once(' ').unwrap();
            let plain = kind.strip_prefix("repeated ");
            fields.push(Field {
                name: name.to_owned(),
                kind: plain.unwrap_or(kind).to_owned(),
                repeated: plain.is_some(),
                number: number.parse().unwrap(),
            });
        }
    }
    messages.extend(current);
    messages
}

/// A field with a value of its type, as it is on the wire.
fn sample(field: &Field) -> Vec<u8> {
    let (wire_type, value): (u32, &[u8]) = match field.kind.as_str() {
        "bool" | "int32" | "int64" => (0, &[1]),
        "string" | "bytes" => (2, b"\x01x"),
        "map<string, string>" => (2, b"\x06\x0a\x01k\x12\x01v"),
        // An empty message.
        _ => (2, &[0]),
    };
    let mut bytes = Vec::new();
    for _ in 0..if field.repeated { 2 } else { 1 } {
        prost::encoding::encode_varint(u64::from(field.number) << 3 | u64::from(wire_type), &mut bytes);
        bytes.extend_from_slice(value);
    }
    bytes
}

#[test]
fn the_description_and_the_messages_agree() {
    let ours = ours();
    let described = described();
    assert_eq!(described.keys().map(String::as_str).collect::<Vec<_>>(), ours.keys().copied().collect::<Vec<_>>());
    let mut fields = 0;
    for (message, described) in &described {
        for field in described {
            let bytes = sample(field);
            let back = ours[message.as_str()](&bytes);
            assert_eq!(back.as_ref().ok(), Some(&bytes), "{message}.{} of type {}", field.name, field.kind);
            fields += 1;
        }
        // A number that nobody uses is what a wrong number would look like.
        let unused = sample(&Field { name: String::new(), kind: "string".into(), repeated: false, number: 60 });
        assert_eq!(ours[message.as_str()](&unused).unwrap(), b"", "{message}");
    }
    assert!(fields > 100, "only {fields} fields were read");
}
