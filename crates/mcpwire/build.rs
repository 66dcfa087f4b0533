//! Embeds the files of `sample/` in the program.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("sample");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    walk(&root, &mut files)?;
    files.sort();
    let mut code = String::from("static FILES: &[(&str, &[u8])] = &[\n");
    for file in files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        // The generated code is Rust: Debug of a text is a literal of it.
        let _ = writeln!(code, "({:?}, include_bytes!({:?})),", name.to_string_lossy().replace('\\', "/"), file);
    }
    code.push_str("];\n");
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("sample.rs"), code)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
