//! The child's stderr, line by line, in our log.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

use super::guard;

/// How much is read at once: most programs say little here.
const CHUNK: usize = 512;
/// The longest line that is logged whole, in bytes.
const LONGEST: usize = 4096;

/// Logs until the end. Gives the guard's report, if that is what came first.
pub(super) async fn drain(stderr: impl AsyncRead + Unpin, name: String, guarded: bool) -> Option<io::Error> {
    let mut input = BufReader::with_capacity(CHUNK, stderr);
    let mut first = guarded;
    while let Ok(Some(line)) = next_line(&mut input).await {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if std::mem::take(&mut first)
            && let Some(error) = guard::reported(text)
        {
            return Some(error);
        }
        if !text.is_empty() {
            tracing::info!(target: "child", "{name}: {text}");
        }
    }
    None
}

/// The beginning of the next line; what is over the limit is dropped.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let chunk = input.fill_buf().await?;
        if chunk.is_empty() {
            return Ok((!line.is_empty()).then_some(line));
        }
        let end = chunk.iter().position(|&byte| byte == b'\n');
        let text = &chunk[..end.unwrap_or(chunk.len())];
        line.extend_from_slice(&text[..text.len().min(LONGEST - line.len())]);
        let used = end.map_or(chunk.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_lines_are_cut_and_the_next_one_is_whole() {
        let text = format!("{}\n\nshort\nno break", "x".repeat(3 * LONGEST));
        for capacity in [1, 7, 64 * 1024] {
            let mut input = BufReader::with_capacity(capacity, text.as_bytes());
            let mut lines = Vec::new();
            while let Some(line) = next_line(&mut input).await.unwrap() {
                lines.push(String::from_utf8(line).unwrap());
            }
            assert_eq!(lines, [&"x".repeat(LONGEST), "", "short", "no break"], "capacity {capacity}");
        }
    }

    #[tokio::test]
    async fn the_guards_report_counts_on_the_first_line_only() {
        let report = guard::report(&io::Error::from_raw_os_error(2));
        let first = drain(report.as_bytes(), "x".into(), true).await;
        assert_eq!(first.unwrap().kind(), io::ErrorKind::NotFound);
        assert!(drain(report.as_bytes(), "x".into(), false).await.is_none());
        assert!(drain(format!("a\n{report}\n").as_bytes(), "x".into(), true).await.is_none());
    }
}
