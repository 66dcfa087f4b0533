//! A text as words that can be compared: without case, accents, plural endings and punctuation.

/// What a question says beyond this many words is not looked at, nor beyond this many bytes.
const MOST_WORDS: usize = 200;
const LONGEST: usize = 4000;

/// A word of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::folder::data) struct Word {
    /// As it is written.
    pub(super) raw: String,
    pub(super) stem: String,
    lower: String,
    is_stop: bool,
    is_filler: bool,
    /// Which of the quotations it is in.
    pub(super) quote: Option<usize>,
    /// Whether it is written like a proper name.
    pub(super) is_name: bool,
    /// Whether a comma or slash separates it from the word before.
    pub(super) after_comma: bool,
    /// Whether `'s` follows it.
    pub(super) is_possessive: bool,
}

/// Words of grammar and request, and verbs that fit any record: they never tell which records are meant.
const STOP_WORDS: &str = "a an the and or but nor in on at to for of with by from as into onto via per within about \
    is are was were be been being am do does did done has have had having will would shall should can could may might must \
    i me my mine we us our ours you your yours he him his she her hers it its they them their theirs \
    this that these those there here then than so such same also too just only very much more most some any all every each \
    both either neither other others another one ones everybody everyone everything somebody someone something anybody \
    anyone anything nobody none nothing who whom whose which what when where why how many few several \
    list find show fetch get give tell display search look looking lookup return retrieve select count query filter see \
    want wanted need needed like know knows known please kindly help let lets \
    named called titled apply applies applied applying belong belongs belonging concern concerns concerning \
    relate related relates regarding relevant match matches matching contain contains containing include includes \
    including equal equals work works working worked use uses using used own owns owned live lives living lived located \
    based exist exists existing not no without except excluding outside non never isn aren doesn don didn wasn weren hasn \
    haven t s if whether while because since until before after during between again still already yet ever always once \
    make made makes take takes taken come comes go goes put keep > < >= <=";

/// Words that are mostly in the way, too, but may be the value of a field: the status `new`.
const FILLERS: &str = "record records entry entries item items result results row rows information info detail details \
    name currently current now today order ordered sort sorted alphabetical alphabetically ascending descending group \
    grouped total number amount company organisation organization business general full complete whole entire short \
    brief table overview summary first last top next previous new newest latest old oldest";

/// Plurals and past forms that no rule forms.
const IRREGULAR: [(&str, &str); 27] = [
    ("people", "person"),
    ("persons", "person"),
    ("children", "child"),
    ("men", "man"),
    ("women", "woman"),
    ("mice", "mouse"),
    ("geese", "goose"),
    ("feet", "foot"),
    ("teeth", "tooth"),
    ("knives", "knife"),
    ("shelves", "shelf"),
    ("leaves", "leaf"),
    ("lives", "life"),
    ("halves", "half"),
    ("wives", "wife"),
    ("wolves", "wolf"),
    ("led", "lead"),
    ("wrote", "write"),
    ("written", "write"),
    ("bought", "buy"),
    ("sold", "sell"),
    ("taught", "teach"),
    ("built", "build"),
    ("ran", "run"),
    ("held", "hold"),
    ("paid", "pay"),
    ("sent", "send"),
];

impl Word {
    pub(super) fn is_stop(&self) -> bool {
        self.quote.is_none() && self.is_stop
    }

    /// Whether it tells nothing, unless it is the whole value of a field.
    pub(super) fn is_filler(&self) -> bool {
        self.quote.is_none() && (self.is_stop || self.is_filler)
    }

    pub(super) fn is(&self, words: &[&str]) -> bool {
        self.quote.is_none() && words.contains(&self.lower.as_str())
    }

    pub(super) fn number(&self) -> Option<f64> {
        self.raw
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite() && self.raw.starts_with(|c: char| c.is_ascii_digit()))
    }
}

fn is_one_of(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

/// The words of a question.
pub(in crate::folder::data) fn read(question: &str) -> Vec<Word> {
    let end = (0..=question.len().min(LONGEST)).rev().find(|at| question.is_char_boundary(*at)).unwrap_or_default();
    let question = question[..end].trim_start();
    // The name of a chat participant is not part of the question.
    let question = match question.strip_prefix('@') {
        Some(addressed) => addressed.split_once(char::is_whitespace).map_or("", |(_, question)| question),
        None => question,
    };
    let mut words = Vec::new();
    let (mut quotes, mut rest, mut start) = (0, question, true);
    while !rest.is_empty() {
        let before = question[..question.len() - rest.len()].chars().next_back();
        if let Some((inside, after)) = quotation(rest, before) {
            let group = words.len();
            split(inside, |piece| words.push(word(&piece, false)));
            words[group..].iter_mut().for_each(|word| word.quote = Some(quotes));
            (quotes, rest, start) = (quotes + 1, after, false);
            continue;
        }
        let opens =
            |(at, c): &(usize, char)| is_open(*c) && quotation(&rest[*at..], rest[..*at].chars().next_back()).is_some();
        let end = rest.char_indices().skip(1).find(opens).map_or(rest.len(), |(at, _)| at);
        let plain = &rest[..end];
        split(plain, |piece| {
            words.push(word(&piece, start));
            start = piece.ends_sentence;
        });
        rest = &rest[plain.len()..];
    }
    words.truncate(MOST_WORDS);
    // Where everything is written like a name, it says nothing.
    if !words.iter().any(|word| word.raw.starts_with(char::is_lowercase)) {
        words.iter_mut().for_each(|word| word.is_name = false);
    }
    words
}

/// The stems of a value, or of a name.
pub(in crate::folder::data) fn stems(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    split(text, |piece| stems.push(stem(piece.text)));
    stems
}

/// The stems of a field's or folder's name: `ownerDepartmentId`, `machine-tools`.
pub(super) fn name_stems(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut last = ' ';
    for c in name.chars() {
        if c.is_uppercase() && (last.is_lowercase() || last.is_numeric()) {
            spaced.push(' ');
        }
        spaced.push(c);
        last = c;
    }
    stems(&spaced)
}

struct Piece<'a> {
    text: &'a str,
    after_comma: bool,
    is_possessive: bool,
    ends_sentence: bool,
}

fn word(piece: &Piece<'_>, starts: bool) -> Word {
    let lower = piece.text.to_lowercase();
    Word {
        is_stop: is_one_of(STOP_WORDS, &lower),
        is_filler: is_one_of(FILLERS, &lower),
        lower,
        raw: piece.text.to_owned(),
        stem: stem(piece.text),
        quote: None,
        is_name: !starts && piece.text.starts_with(char::is_uppercase),
        after_comma: piece.after_comma,
        is_possessive: piece.is_possessive,
    }
}

fn is_open(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '\u{201c}' | '\u{201e}' | '\u{2018}' | '\u{201a}' | '\u{ab}')
}

/// The text between quotation marks at the beginning of a text, and what follows. An apostrophe opens none within a word.
fn quotation(text: &str, before: Option<char>) -> Option<(&str, &str)> {
    let open = text.chars().next().filter(|c| is_open(*c))?;
    let inside = &text[open.len_utf8()..];
    let is_single = matches!(open, '\'' | '\u{2018}' | '\u{201a}');
    if before.is_some_and(char::is_alphanumeric) && is_single {
        return None;
    }
    let closes = |c: char| match open {
        '"' | '`' => c == open || (open == '"' && c == '\u{201d}'),
        '\'' => c == '\'',
        '\u{ab}' => c == '\u{bb}',
        '\u{2018}' | '\u{201a}' => c == '\u{2019}' || c == '\u{2018}',
        _ => matches!(c, '\u{201c}' | '\u{201d}' | '"'),
    };
    let ends = |(at, c): &(usize, char)| {
        let next = inside[at + c.len_utf8()..].chars().next();
        closes(*c) && !(is_single && next.is_some_and(char::is_alphanumeric))
    };
    let (end, close) = inside.char_indices().find(ends)?;
    let quoted = &inside[..end];
    quoted.contains(char::is_alphanumeric).then(|| (quoted, &inside[end + close.len_utf8()..]))
}

/// Cuts a text into words. `&` is `and`; `+` and `#` belong to the word before them; a number keeps its decimals.
fn split<'a>(text: &'a str, mut give: impl FnMut(Piece<'a>)) {
    let (mut at, mut after_comma) = (0, false);
    while let Some(c) = text[at..].chars().next() {
        let start = at;
        at += c.len_utf8();
        let symbol = match c {
            '&' => Some("and"),
            '>' if text[at..].starts_with('=') => Some(">="),
            '<' if text[at..].starts_with('=') => Some("<="),
            '>' => Some(">"),
            '<' => Some("<"),
            _ => None,
        };
        if let Some(text) = symbol {
            give(Piece { text, after_comma: false, is_possessive: false, ends_sentence: false });
            continue;
        }
        if !c.is_alphanumeric() {
            after_comma |= matches!(c, ',' | ';' | '/');
            continue;
        }
        at = word_end(text, start);
        let rest = &text[at..];
        let suffix = ["'s", "\u{2019}s"]
            .into_iter()
            .find(|suffix| rest.strip_prefix(suffix).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)));
        let end = at;
        at += suffix.map_or(0, str::len);
        let ends_sentence = text[at..].starts_with(['.', '?', '!', ':']);
        give(Piece { text: &text[start..end], after_comma, is_possessive: suffix.is_some(), ends_sentence });
        after_comma = false;
    }
}

fn word_end(text: &str, start: usize) -> usize {
    let is_number = text[start..].starts_with(|c: char| c.is_ascii_digit());
    let mut chars = text[start..].char_indices().peekable();
    let (mut only_digits, mut decimals) = (is_number, false);
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        if c.is_alphanumeric() {
            only_digits &= c.is_ascii_digit();
        } else if c == '.' && only_digits && !decimals && next.is_some_and(|c| c.is_ascii_digit()) {
            decimals = true;
        } else if !matches!(c, '+' | '#') || next.is_some_and(char::is_alphanumeric) {
            return start + at;
        }
    }
    text.len()
}

/// A word without case, accents and plural ending. It need not be a word: it is only compared with other stems.
fn stem(word: &str) -> String {
    let mut lower = String::new();
    for c in word.chars().flat_map(char::to_lowercase) {
        match fold(c) {
            "" => lower.push(c),
            plain => lower.push_str(plain),
        }
    }
    let lower = IRREGULAR
        .iter()
        .find(|(plural, _)| *plural == lower)
        .map_or(lower.as_str(), |(_, singular)| singular)
        .to_owned();
    let mut stem = lower.as_str();
    if stem.len() > 6 && stem.is_ascii() {
        stem = stem.strip_suffix("ly").unwrap_or(stem);
    }
    if stem.chars().count() > 3 && stem.is_ascii() {
        if !stem.ends_with("ss") && !stem.ends_with("us") && !stem.ends_with("is") {
            stem = stem.strip_suffix('s').unwrap_or(stem);
        }
        stem = stem.strip_suffix('e').unwrap_or(stem);
        if let Some(start) = stem.strip_suffix('y') {
            return format!("{start}i");
        }
    }
    stem.to_owned()
}

/// A Latin letter without its accent; empty for letters that have none.
fn fold(c: char) -> &'static str {
    match c {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ç' | 'ć' | 'č' | 'ĉ' | 'ċ' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'į' | 'ı' => "i",
        'ķ' => "k",
        'ł' | 'ĺ' | 'ļ' | 'ľ' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' | 'ō' | 'ő' => "o",
        'ŕ' | 'ř' => "r",
        'ś' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ț' => "t",
        'ù' | 'ú' | 'û' | 'ü' | 'ū' | 'ů' | 'ű' | 'ų' => "u",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        'æ' => "ae",
        'œ' => "oe",
        _ => "",
    }
}

/// Whether two stems are forms of one word, as `manager` and `managed` are.
pub(super) fn akin(a: &str, b: &str) -> bool {
    const ENDINGS: [&str; 18] = [
        "", "e", "d", "r", "er", "ed", "or", "ing", "ion", "ment", "age", "ship", "i", "al", "ity", "iti", "ication",
        "ag",
    ];
    if a == b {
        return true;
    }
    let shared = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum::<usize>();
    // `tagged`: a consonant is doubled before an ending.
    let last = a[..shared].chars().next_back();
    let is_ending = |rest: &str| {
        ENDINGS.contains(&rest)
            || last.and_then(|last| rest.strip_prefix(last)).is_some_and(|rest| ENDINGS.contains(&rest))
    };
    shared >= 3 && is_ending(&a[shared..]) && is_ending(&b[shared..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singular_and_plural_have_one_stem() {
        for (one, many) in [
            ("city", "cities"),
            ("house", "houses"),
            ("box", "boxes"),
            ("class", "classes"),
            ("branch", "branches"),
            ("bus", "buses"),
            ("movie", "movies"),
            ("person", "People"),
            ("Engineer", "ENGINEERS"),
            ("status", "statuses"),
            ("Malmö", "malmo"),
        ] {
            assert_eq!(stem(one), stem(many), "{one} {many}");
        }
        assert_ne!(stem("engineer"), stem("engineering"));
    }

    #[test]
    fn quotations_names_and_numbers() {
        let words = read("Find \"Senior Developer\" and Ana's 'O'Brien', C++ 110.5 in Köln.");
        let raw: Vec<&str> = words.iter().map(|word| word.raw.as_str()).collect();
        assert_eq!(raw, ["Find", "Senior", "Developer", "and", "Ana", "O", "Brien", "C++", "110.5", "in", "Köln"]);
        let quotes: Vec<Option<usize>> = words.iter().map(|word| word.quote).collect();
        assert_eq!(quotes[..7], [None, Some(0), Some(0), None, None, Some(1), Some(1)]);
        assert!(!words[0].is_name && words[4].is_name && words[4].is_possessive && words[7].after_comma);
        assert_eq!(words[8].number(), Some(110.5));
        assert!(read("don't say 5\" or rock 'n roll").iter().all(|word| word.quote.is_none()));
        assert!(read("").is_empty() && read("\"\"'“").is_empty());
    }

    #[test]
    fn forms_of_a_word_are_akin() {
        for (a, b) in [("manager", "managed"), ("own", "owner"), ("volt", "voltag"), ("critical", "criticaliti")] {
            assert!(akin(a, b), "{a} {b}");
        }
        assert!(!akin("post", "potato") && !akin("engineer", "engine-room"));
    }
}
