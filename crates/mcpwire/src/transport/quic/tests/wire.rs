//! The bytes of the wire, against vectors that were encoded by hand.

use std::fmt::{Debug, Write};

use prost::Message;

use crate::transport::quic::frame::{LONGEST, encode};
use crate::transport::quic::proto::{
    HealthRequest, Kind, ListToolsRequest, PluginRequest, PluginResponse, RegistrationResult, Request, Response,
    StorageReadResponse, Struct, ToolRequest, ToolResponse, Value,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Encodes to the vector, and the vector decodes to the same.
fn check<M: Message + Default + PartialEq + Debug>(message: &M, vector: &str) {
    let frame = encode(message).unwrap();
    assert_eq!(hex(&frame), vector);
    assert_eq!(M::decode(&frame[4..]).unwrap(), *message);
}

fn request(id: &str, request: Request) -> PluginRequest {
    PluginRequest { request_id: id.into(), request: Some(request) }
}

fn one_field(name: &str, kind: Kind) -> Option<Struct> {
    Some(Struct { fields: [(name.to_owned(), Value { kind: Some(kind) })].into() })
}

#[test]
fn a_list_request() {
    let message = request("stdio-lt-2", Request::ListTools(ListToolsRequest {}));
    check(&message, "0000000f0a0a737464696f2d6c742d32aa0100");
}

#[test]
fn a_health_request() {
    check(&request("h", Request::Health(HealthRequest {})), "000000050a01686a00");
}

#[test]
fn a_registration() {
    let register = RegistrationResult { accepted: true, reject_reason: String::new() };
    let message = PluginResponse { request_id: "r".into(), response: Some(Response::Register(register)) };
    check(&message, "000000070a017252020801");
}

#[test]
fn a_tool_call_and_its_answer() {
    let call = ToolRequest {
        tool_name: "echo".into(),
        arguments: one_field("n", Kind::Number(1.0)),
        caller_plugin: "transport.stdio".into(),
        session_id: "sess".into(),
        ..Default::default()
    };
    check(
        &request("stdio-tc-3", Request::ToolCall(call)),
        "0000003e0a0a737464696f2d74632d33a2012f0a046563686f12100a0e0a016e120911000000000000f03f\
         1a0f7472616e73706f72742e737464696f320473657373",
    );
    let answer =
        ToolResponse { success: true, result: one_field("text", Kind::String("hi".into())), ..Default::default() };
    let message = PluginResponse { request_id: "stdio-tc-3".into(), response: Some(Response::ToolCall(answer)) };
    check(&message, "000000210a0a737464696f2d74632d33a201120801120e0a0c0a047465787412041a026869");
}

#[test]
fn an_empty_message_is_a_frame_of_length_zero() {
    check(&PluginRequest::default(), "00000000");
}

#[test]
fn a_message_over_the_limit_is_no_frame() {
    // Two tags and two lengths lie around the content.
    let message = |content: usize| StorageReadResponse { content: vec![b'x'; content], ..Default::default() };
    let fits = encode(&message(LONGEST - 5)).unwrap();
    assert_eq!(fits.len(), LONGEST + 4);
    assert!(encode(&message(LONGEST - 4)).is_none());
}
