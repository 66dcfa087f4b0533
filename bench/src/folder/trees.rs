//! The folders that are served: so many Markdown files, or one large file of records. The same in every run.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

const CATEGORIES: [&str; 6] = ["agents", "skills", "patterns", "guides", "examples", "workflows"];

/// A folder that is removed with this.
pub struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("mcpwire-bench-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `count` fragments of about 2 kB with tags, capabilities and uses from a vocabulary of 3,000 words.
    pub fn of_resources(count: usize) -> Result<Self> {
        let tree = Self::new(&format!("resources-{count}"))?;
        let mut words = Words(42);
        for category in CATEGORIES {
            fs::create_dir_all(tree.0.join("resources").join(category))?;
        }
        for number in 0..count {
            let category = CATEGORIES[number % CATEGORIES.len()];
            let mut text = format!("---\ntags: [{}]\ncapabilities:\n", words.some(5).join(", "));
            for _ in 0..4 {
                writeln!(text, "  - {}", words.some(4).join(" "))?;
            }
            text.push_str("useWhen:\n");
            for _ in 0..3 {
                writeln!(text, "  - {}", words.some(6).join(" "))?;
            }
            writeln!(text, "---\n# Fragment {number}\n\n{}", words.some(250).join(" "))?;
            fs::write(tree.0.join(format!("resources/{category}/f{number}.md")), text)?;
        }
        Ok(tree)
    }

    /// `count` records of about 200 bytes; gives the size of their file, too.
    pub fn of_records(count: usize) -> Result<(Self, u64)> {
        let tree = Self::new("records")?;
        let folder = tree.0.join("data/people");
        fs::create_dir_all(&folder)?;
        let mut words = Words(7);
        let mut text = String::from("[\n");
        for number in 0..count {
            let name = words.some(2).join(" ");
            let (skills, note) = (words.some(3), words.some(8).join(" "));
            let end = if number + 1 < count { "," } else { "" };
            writeln!(
                text,
                r#"{{"id":"person-{number}","name":"{name}","departmentId":"dept-{}","level":{},"skills":["{}","{}","{}"],"note":"{note}"}}{end}"#,
                number % 400,
                number % 10,
                skills[0],
                skills[1],
                skills[2],
            )?;
        }
        text.push_str("]\n");
        fs::write(folder.join("records.json"), &text)?;
        Ok((tree, text.len() as u64))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Words that come in the same order every time.
pub struct Words(pub u64);

impl Words {
    pub fn next(&mut self) -> String {
        // Knuth's MMIX generator: its upper bits are random enough for words.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (self.0 >> 33) % 3000;
        const SOUNDS: [&str; 15] =
            ["ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu"];
        let [a, b, c] = [number / 225, number / 15 % 15, number % 15].map(|at| SOUNDS[at as usize % 15]);
        format!("{a}{b}{c}")
    }

    fn some(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.next()).collect()
    }
}
