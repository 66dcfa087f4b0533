//! The messages of the Orchestra plugin protocol, as `proto/plugin.proto` describes them; a test compares the two.
//!
//! Written with prost's derive and not generated: a compiler for the description would bring some thirty crates to every
//! build, for a file that does not change.

use std::collections::{BTreeMap, HashMap};

#[derive(Clone, PartialEq, prost::Message)]
pub struct PluginRequest {
    #[prost(string, tag = "1")]
    pub request_id: String,
    #[prost(oneof = "Request", tags = "10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 40, 41, 50, 51, 52")]
    pub request: Option<Request>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Request {
    #[prost(message, boxed, tag = "10")]
    Register(Box<PluginManifest>),
    #[prost(message, tag = "11")]
    Boot(BootRequest),
    #[prost(message, tag = "12")]
    Shutdown(ShutdownRequest),
    #[prost(message, tag = "13")]
    Health(HealthRequest),
    #[prost(message, tag = "20")]
    ToolCall(ToolRequest),
    #[prost(message, tag = "21")]
    ListTools(ListToolsRequest),
    #[prost(message, tag = "22")]
    ListPrompts(ListPromptsRequest),
    #[prost(message, tag = "23")]
    PromptGet(PromptGetRequest),
    #[prost(message, tag = "30")]
    StorageRead(StorageReadRequest),
    #[prost(message, tag = "31")]
    StorageWrite(StorageWriteRequest),
    #[prost(message, tag = "32")]
    StorageDelete(StorageDeleteRequest),
    #[prost(message, tag = "33")]
    StorageList(StorageListRequest),
    #[prost(message, tag = "40")]
    StreamStart(StreamStart),
    #[prost(message, tag = "41")]
    StreamCancel(StreamCancel),
    #[prost(message, tag = "50")]
    Subscribe(Subscribe),
    #[prost(message, tag = "51")]
    Unsubscribe(Unsubscribe),
    #[prost(message, tag = "52")]
    Publish(Publish),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PluginResponse {
    #[prost(string, tag = "1")]
    pub request_id: String,
    #[prost(oneof = "Response", tags = "10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 40, 41")]
    pub response: Option<Response>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Response {
    #[prost(message, tag = "10")]
    Register(RegistrationResult),
    #[prost(message, tag = "11")]
    Boot(BootResult),
    #[prost(message, tag = "12")]
    Shutdown(ShutdownResult),
    #[prost(message, tag = "13")]
    Health(HealthResult),
    #[prost(message, tag = "20")]
    ToolCall(ToolResponse),
    #[prost(message, tag = "21")]
    ListTools(ListToolsResponse),
    #[prost(message, tag = "22")]
    ListPrompts(ListPromptsResponse),
    #[prost(message, tag = "23")]
    PromptGet(PromptGetResponse),
    #[prost(message, tag = "30")]
    StorageRead(StorageReadResponse),
    #[prost(message, tag = "31")]
    StorageWrite(StorageWriteResponse),
    #[prost(message, tag = "32")]
    StorageDelete(StorageDeleteResponse),
    #[prost(message, tag = "33")]
    StorageList(StorageListResponse),
    #[prost(message, tag = "40")]
    StreamChunk(StreamChunk),
    #[prost(message, tag = "41")]
    StreamEnd(StreamEnd),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PluginManifest {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, tag = "3")]
    pub language: String,
    #[prost(string, repeated, tag = "4")]
    pub provides_tools: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub provides_events: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    pub provides_storage: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub provides_transport: Vec<String>,
    #[prost(string, repeated, tag = "8")]
    pub provides_ai: Vec<String>,
    #[prost(string, repeated, tag = "9")]
    pub needs_storage: Vec<String>,
    #[prost(string, repeated, tag = "10")]
    pub needs_events: Vec<String>,
    #[prost(string, repeated, tag = "11")]
    pub needs_ai: Vec<String>,
    #[prost(string, repeated, tag = "12")]
    pub needs_tools: Vec<String>,
    #[prost(string, tag = "13")]
    pub description: String,
    #[prost(string, tag = "14")]
    pub author: String,
    #[prost(string, tag = "15")]
    pub binary: String,
    #[prost(string, repeated, tag = "16")]
    pub args: Vec<String>,
    #[prost(map = "string, string", tag = "17")]
    pub env: HashMap<String, String>,
    #[prost(string, repeated, tag = "18")]
    pub provides_prompts: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct RegistrationResult {
    #[prost(bool, tag = "1")]
    pub accepted: bool,
    #[prost(string, tag = "2")]
    pub reject_reason: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct BootRequest {
    #[prost(map = "string, string", tag = "1")]
    pub config: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct BootResult {
    #[prost(bool, tag = "1")]
    pub ready: bool,
    #[prost(string, tag = "2")]
    pub error: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ShutdownRequest {
    #[prost(int32, tag = "1")]
    pub timeout_seconds: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ShutdownResult {
    #[prost(bool, tag = "1")]
    pub clean: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HealthRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HealthResult {
    #[prost(int32, tag = "1")]
    pub status: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(map = "string, string", tag = "3")]
    pub details: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ToolRequest {
    #[prost(string, tag = "1")]
    pub tool_name: String,
    #[prost(message, optional, tag = "2")]
    pub arguments: Option<Struct>,
    #[prost(string, tag = "3")]
    pub caller_plugin: String,
    #[prost(string, tag = "4")]
    pub trace_parent: String,
    #[prost(string, tag = "5")]
    pub provider: String,
    #[prost(string, tag = "6")]
    pub session_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ToolResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
    #[prost(message, optional, tag = "2")]
    pub result: Option<Struct>,
    #[prost(string, tag = "3")]
    pub error_code: String,
    #[prost(string, tag = "4")]
    pub error_message: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ListToolsRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ListToolsResponse {
    #[prost(message, repeated, tag = "1")]
    pub tools: Vec<ToolDefinition>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ToolDefinition {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(message, optional, tag = "3")]
    pub input_schema: Option<Struct>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ListPromptsRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ListPromptsResponse {
    #[prost(message, repeated, tag = "1")]
    pub prompts: Vec<PromptDefinition>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PromptDefinition {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(message, repeated, tag = "3")]
    pub arguments: Vec<PromptArgument>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PromptArgument {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(bool, tag = "3")]
    pub required: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PromptGetRequest {
    #[prost(string, tag = "1")]
    pub prompt_name: String,
    #[prost(map = "string, string", tag = "2")]
    pub arguments: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PromptGetResponse {
    #[prost(string, tag = "1")]
    pub description: String,
    #[prost(message, repeated, tag = "2")]
    pub messages: Vec<PromptMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PromptMessage {
    #[prost(string, tag = "1")]
    pub role: String,
    #[prost(message, optional, tag = "2")]
    pub content: Option<PromptContent>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PromptContent {
    #[prost(string, tag = "1")]
    pub r#type: String,
    #[prost(string, tag = "2")]
    pub text: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StorageReadRequest {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(string, tag = "2")]
    pub storage_type: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StorageReadResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub content: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<Struct>,
    #[prost(int64, tag = "3")]
    pub version: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StorageWriteRequest {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(bytes = "vec", tag = "2")]
    pub content: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub metadata: Option<Struct>,
    #[prost(int64, tag = "4")]
    pub expected_version: i64,
    #[prost(string, tag = "5")]
    pub storage_type: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StorageWriteResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
    #[prost(int64, tag = "2")]
    pub new_version: i64,
    #[prost(string, tag = "3")]
    pub error: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StorageDeleteRequest {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(string, tag = "2")]
    pub storage_type: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StorageDeleteResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StorageListRequest {
    #[prost(string, tag = "1")]
    pub prefix: String,
    #[prost(string, tag = "2")]
    pub pattern: String,
    #[prost(string, tag = "3")]
    pub storage_type: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StorageListResponse {
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<StorageEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StorageEntry {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(int64, tag = "2")]
    pub size: i64,
    #[prost(int64, tag = "3")]
    pub version: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamStart {
    #[prost(string, tag = "1")]
    pub stream_id: String,
    #[prost(string, tag = "2")]
    pub tool_name: String,
    #[prost(message, optional, tag = "3")]
    pub arguments: Option<Struct>,
    #[prost(string, tag = "4")]
    pub caller_plugin: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamCancel {
    #[prost(string, tag = "1")]
    pub stream_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamChunk {
    #[prost(string, tag = "1")]
    pub stream_id: String,
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
    #[prost(string, tag = "3")]
    pub content_type: String,
    #[prost(int64, tag = "4")]
    pub sequence: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StreamEnd {
    #[prost(string, tag = "1")]
    pub stream_id: String,
    #[prost(bool, tag = "2")]
    pub success: bool,
    #[prost(string, tag = "3")]
    pub error_code: String,
    #[prost(string, tag = "4")]
    pub error_message: String,
    #[prost(int64, tag = "5")]
    pub total_chunks: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Subscribe {
    #[prost(string, tag = "1")]
    pub subscription_id: String,
    #[prost(string, tag = "2")]
    pub topic: String,
    #[prost(map = "string, string", tag = "3")]
    pub filters: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Unsubscribe {
    #[prost(string, tag = "1")]
    pub subscription_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Publish {
    #[prost(string, tag = "1")]
    pub topic: String,
    #[prost(string, tag = "2")]
    pub event_type: String,
    #[prost(message, optional, tag = "3")]
    pub payload: Option<Struct>,
    #[prost(string, tag = "4")]
    pub source_plugin: String,
}

/// `google.protobuf.Struct`. Sorted by name, as the peers print it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Struct {
    #[prost(btree_map = "string, message", tag = "1")]
    pub fields: BTreeMap<String, Value>,
}

/// `google.protobuf.Value`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Value {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6")]
    pub kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Kind {
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    String(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(message, tag = "5")]
    Struct(Struct),
    #[prost(message, tag = "6")]
    List(ListValue),
}

/// `google.protobuf.ListValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListValue {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Value>,
}
