//! What a path below a folder means: which files are prompts and resources, their URIs and their MIME types.

/// How a resource is served: its MIME type, whether it is text, and whether its URI goes without the extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) mime: &'static str,
    pub(super) is_text: bool,
    pub(super) bare: bool,
}

const fn text(mime: &'static str) -> Form {
    Form { mime, is_text: true, bare: false }
}

const fn binary(mime: &'static str) -> Form {
    Form { mime, is_text: false, bare: false }
}

/// The form of a file, by its extension; unknown ones are blobs.
pub(super) fn form(path: &str) -> Form {
    let extension = extension(path).to_ascii_lowercase();
    match extension.as_str() {
        "md" | "markdown" => Form { bare: true, ..text("text/markdown") },
        "json" => Form { bare: true, ..text("application/json") },
        "yaml" | "yml" => Form { bare: true, ..text("application/yaml") },
        "txt" | "text" | "log" => text("text/plain"),
        "toml" => text("application/toml"),
        "csv" => text("text/csv"),
        "html" | "htm" => text("text/html"),
        "css" => text("text/css"),
        "js" | "mjs" | "ts" | "tsx" | "jsx" => text("text/javascript"),
        "xml" => text("application/xml"),
        "jsonl" | "ndjson" => text("application/x-ndjson"),
        "py" | "rs" | "go" | "sh" | "sql" | "java" | "rb" | "c" | "h" | "cpp" => text("text/plain"),
        "svg" => text("image/svg+xml"),
        "png" => binary("image/png"),
        "jpg" | "jpeg" => binary("image/jpeg"),
        "gif" => binary("image/gif"),
        "webp" => binary("image/webp"),
        "pdf" => binary("application/pdf"),
        "zip" => binary("application/zip"),
        "mp3" => binary("audio/mpeg"),
        "wav" => binary("audio/wav"),
        _ => binary("application/octet-stream"),
    }
}

fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, extension)| extension)
}

/// A path without the extension of its file.
pub(super) fn stem(path: &str) -> &str {
    match extension(path).len() {
        0 => path,
        length => &path[..path.len() - length - 1],
    }
}

/// The top folder of a path, if it is in one.
pub(super) fn top(path: &str) -> Option<&str> {
    path.split_once('/').map(|(top, _)| top)
}

pub(super) fn is_markdown(path: &str) -> bool {
    matches!(extension(path).to_ascii_lowercase().as_str(), "md" | "markdown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_and_stems() {
        assert_eq!(
            (stem("agents/a.b.md"), stem("agents/plain"), stem("x/.hidden")),
            ("agents/a.b", "agents/plain", "x/.hidden")
        );
        assert_eq!((top("agents/x/y.md"), top("y.md")), (Some("agents"), None));
        assert_eq!(form("a/B.YML").mime, "application/yaml");
        assert_eq!(form("a/b").mime, "application/octet-stream");
        assert!(is_markdown("a.MD") && !is_markdown("md"));
    }
}
