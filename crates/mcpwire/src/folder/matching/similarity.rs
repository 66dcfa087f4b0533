//! How alike two words are, by the edits between them.

/// What a word that is spelt almost like a keyword is worth: the whole part of eight times the similarity, which is
/// `1 - edits / length of the longer`; nothing unless the similarity is above 0.7.
pub(super) fn points(keyword: &[u8], word: &[u8]) -> u8 {
    let (longer, shorter) = (keyword.len().max(word.len()), keyword.len().min(word.len()));
    // Similarity above 0.7 is fewer edits than three tenths of the longer.
    let most = (3 * longer).div_ceil(10).saturating_sub(1);
    if shorter == 0 || longer - shorter > most {
        return 0;
    }
    match distance(keyword, word, most) {
        Some(edits) => (8 * (longer - edits) / longer) as u8,
        None => 0,
    }
}

/// The number of edits, if it is at most `most`.
fn distance(a: &[u8], b: &[u8], most: usize) -> Option<usize> {
    const LONGEST: usize = 64;
    if a.len() > LONGEST || b.len() > LONGEST {
        return None;
    }
    let mut row = [0_u8; LONGEST + 1];
    for (at, cell) in row.iter_mut().enumerate().take(b.len() + 1) {
        *cell = at as u8;
    }
    for (at, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at as u8 + 1;
        let mut least = row[0];
        for (at, y) in b.iter().enumerate() {
            let substituted = diagonal + u8::from(x != y);
            diagonal = row[at + 1];
            row[at + 1] = substituted.min(diagonal + 1).min(row[at] + 1);
            least = least.min(row[at + 1]);
        }
        if usize::from(least) > most {
            return None;
        }
    }
    Some(usize::from(row[b.len()])).filter(|edits| *edits <= most)
}

/// Which letters a word has, as bits: words that differ in too many of them need no closer look.
pub(super) fn letters(word: &[u8]) -> u32 {
    word.iter().fold(0, |bits, byte| bits | 1 << (byte & 31))
}

/// Whether two words may be alike at all, by their letters: an edit changes at most two of these bits.
pub(super) fn may_be_alike(a: u32, b: u32, longer: usize) -> bool {
    let most = (3 * longer).div_ceil(10).saturating_sub(1);
    (a ^ b).count_ones() as usize <= 2 * most
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, word for word.
    fn slow(a: &str, b: &str) -> u8 {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let mut table = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                table[i][j] = match (i, j) {
                    (0, _) => j,
                    (_, 0) => i,
                    _ => (table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]))
                        .min(table[i - 1][j] + 1)
                        .min(table[i][j - 1] + 1),
                };
            }
        }
        let longer = a.len().max(b.len()) as f64;
        let similarity = 1.0 - table[a.len()][b.len()] as f64 / longer;
        if similarity > 0.7 { (similarity * 8.0).floor() as u8 } else { 0 }
    }

    #[test]
    fn typing_errors_count() {
        assert_eq!(points(b"typescript", b"typscript"), 7);
        assert_eq!(points(b"databse", b"database"), 7);
        assert_eq!(points(b"async", b"sync"), 6);
        assert_eq!(points(b"foo", b"bar"), 0);
        assert_eq!(points(b"kubernetes", b"kube"), 0);
    }

    proptest! {
        #[test]
        fn the_fast_way_gives_what_the_definition_gives(a in "[abc]{1,12}", b in "[abc]{1,12}") {
            // Floating point may fall to either side of a whole number; whole numbers do not.
            let (fast, slow) = (points(a.as_bytes(), b.as_bytes()), slow(&a, &b));
            prop_assert!(fast == slow || fast == slow + 1, "{} {}", fast, slow);
            let longer = a.len().max(b.len());
            prop_assert!(fast == 0 || may_be_alike(letters(a.as_bytes()), letters(b.as_bytes()), longer));
        }
    }
}
