//! What servers answer with, as thin types: what a program mostly wants to know, beside the whole text as it came.

use std::ops::Deref;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A value, and the whole JSON text it was read from: fields that the type does not know are in there.
#[derive(Debug, Clone)]
pub struct Whole<T> {
    value: T,
    raw: Box<RawValue>,
}

impl<T> Whole<T> {
    /// The text, as the server wrote it.
    pub fn raw(&self) -> &str {
        self.raw.get()
    }

    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for Whole<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole<T>, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        // Serde takes lists for structs.
        if !raw.get().starts_with('{') {
            return Err(D::Error::custom("expected an object"));
        }
        let value = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Whole { value, raw })
    }
}

impl<T> Serialize for Whole<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// What a server says of itself in the handshake.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    #[serde(default)]
    pub protocol_version: String,
    #[serde(default)]
    pub capabilities: Value,
    #[serde(default, rename = "serverInfo")]
    pub info: Implementation,
    #[serde(default)]
    pub instructions: Option<String>,
}

impl Server {
    /// Whether the server declared this capability, as in `tools`.
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(|declared| !declared.is_null())
    }
}

/// The name and the version of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Implementation {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub input_schema: Option<Box<RawValue>>,
    #[serde(default)]
    pub output_schema: Option<Box<RawValue>>,
    #[serde(default)]
    pub annotations: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    pub uri: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub mime_type: Option<String>,
    #[serde(default)]
    pub size: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    pub uri_template: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub mime_type: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Prompt {
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PromptArgument {
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub required: bool,
}

/// What a tool answered; [`content::text`](super::content::text) makes one text of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    #[serde(default)]
    pub content: Vec<Box<RawValue>>,
    #[serde(default)]
    pub structured_content: Option<Box<RawValue>>,
    /// The tool failed, and the content says why.
    #[serde(default)]
    pub is_error: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ReadResult {
    #[serde(default)]
    pub contents: Vec<Contents>,
}

/// A text, or bytes in base64.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    pub uri: String,
    #[serde(default)]
    pub mime_type: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub blob: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PromptResult {
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub messages: Vec<PromptMessage>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PromptMessage {
    pub role: String,
    /// One part; [`content::part_text`](super::content::part_text) makes a text of it.
    pub content: Box<RawValue>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    #[serde(default)]
    pub values: Vec<String>,
    #[serde(default)]
    pub total: Option<u64>,
    #[serde(default)]
    pub has_more: bool,
}
