//! The words of a query that count.

const STOP_WORDS: [&str; 47] = [
    "a", "an", "the", "and", "or", "but", "in", "on", "at", "to", "for", "of", "with", "by", "from", "as", "is", "was",
    "are", "were", "be", "been", "being", "have", "has", "had", "do", "does", "did", "will", "would", "should",
    "could", "may", "might", "can", "i", "you", "he", "she", "it", "we", "they", "this", "that", "these", "those",
];

/// What is asked beyond this is no question any more, and would only take time.
const MOST: usize = 256;

/// Lower-case words of two or more characters that are no stop words, each once, in their order.
pub(super) fn keywords(query: &str) -> Vec<String> {
    let kept = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let lower = query.to_lowercase();
    let mut found: Vec<String> = Vec::new();
    for word in lower.split(|c| !kept(c)).filter(|word| word.len() > 1 && !STOP_WORDS.contains(word)) {
        if found.len() == MOST {
            break;
        }
        if !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::keywords;

    #[test]
    fn words_that_count() {
        assert_eq!(keywords("Build a TypeScript REST API!"), ["build", "typescript", "rest", "api"]);
        assert_eq!(
            keywords("CI/CD c++ x snake_case well-known api API"),
            ["ci", "cd", "snake_case", "well-known", "api"]
        );
        assert_eq!(keywords("I was being the"), [""; 0]);
        assert_eq!(keywords("größe 日本 ab"), ["gr", "ab"]);
        let endless: String = (0..10_000).map(|n| format!("w{n} ")).collect();
        assert_eq!(keywords(&endless).len(), super::MOST);
    }
}
