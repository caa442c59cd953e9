//! Words, sentences and paragraphs drawn from chance.

use crate::chance::Chance;

const WORDS: [&str; 128] = [
    "acorn", "alder", "amber", "anchor", "apple", "arrow", "aspen", "autumn", "badger", "barley", "basket", "beacon",
    "beech", "birch", "bramble", "bridge", "brook", "candle", "canyon", "cedar", "chalk", "cherry", "clover", "cloud",
    "cobalt", "comet", "copper", "coral", "cotton", "crane", "crystal", "cypress", "daisy", "dawn", "delta", "drift",
    "dune", "eagle", "echo", "elm", "ember", "falcon", "fern", "field", "finch", "flint", "forest", "fossil", "fox",
    "garden", "garnet", "glacier", "granite", "grove", "harbour", "hazel", "heath", "hedge", "heron", "hill", "hollow",
    "honey", "horizon", "indigo", "island", "ivory", "ivy", "jasper", "juniper", "kestrel", "lagoon", "lantern",
    "larch", "lark", "lemon", "lichen", "lilac", "linden", "lotus", "maple", "marble", "marsh", "meadow", "mint",
    "mist", "moon", "moss", "nectar", "north", "oak", "ocean", "olive", "onyx", "opal", "orchard", "otter", "pebble",
    "pine", "plum", "pollen", "poppy", "prairie", "quartz", "quill", "rain", "raven", "reed", "ridge", "river",
    "robin", "rowan", "saffron", "sage", "sand", "shore", "silver", "slate", "snow", "spruce", "star", "stone",
    "thistle", "thyme", "tide", "valley", "violet", "willow", "winter",
];

/// One word, lower case ASCII.
pub fn word(chance: Chance) -> &'static str {
    WORDS[chance.below(WORDS.len() as u64) as usize]
}

/// Two words with capitals.
pub fn title(chance: Chance) -> String {
    let mut title = String::new();
    for part in 0..2 {
        let word = word(chance.at(part));
        if part > 0 {
            title.push(' ');
        }
        title.push_str(&word[..1].to_ascii_uppercase());
        title.push_str(&word[1..]);
    }
    title
}

/// Appends sentences of at least `bytes` bytes.
pub fn sentences(chance: Chance, bytes: usize, out: &mut String) {
    let end = out.len() + bytes;
    let mut draw = 0;
    while out.len() < end {
        // One draw gives nine words of seven bits, so that text is cheap next to sending it.
        let bits = chance.at(draw).bits();
        draw += 1;
        for place in 0..9 {
            let word = WORDS[(bits >> (place * 7)) as usize & 127];
            if place == 0 {
                out.push_str(&word[..1].to_ascii_uppercase());
                out.push_str(&word[1..]);
            } else {
                out.push_str(if place == 5 { ", " } else { " " });
                out.push_str(word);
            }
        }
        out.push_str(". ");
    }
}
