//! Files as the other programs write them.

use super::*;

const CHANGEDETECTION: &str = r##"{
 "version_tag": "0.50", "settings": { "application": { "tags": { "t-1": { "title": "News" } } } },
 "watching": {
  "1": { "url": "https://example.org/", "title": "Example", "tags": ["t-1"], "include_filters": ["main .story", "xpath://div[@id='a']"],
         "subtractive_selectors": [".ad"], "ignore_text": ["Visitor 12.", "/seen \\d+ times/i"],
         "time_between_check": { "weeks": null, "days": null, "hours": 2, "minutes": 30, "seconds": null }, "paused": false },
  "2": { "url": "https://example.com/x", "tag": "shop, prices", "include_filters": ["json:$.price", "//div[2]"],
         "browser_steps": [{ "operation": "Click" }], "headers": {}, "processor": "text_json_diff", "paused": true },
  "3": { "title": "no URL" }
 }
}"##;

const URLWATCH: &str = "\
name: Example
url: https://example.org/
filter:
  - css: main
  - xpath: //div[@id=\"a\"]
  - element-by-id: news
  - html2text
  - grepi: 'Visitor \\d+'
---
url: https://example.com/x
tags: [shop]
filter:
  - css:
      selector: .price
      exclude: .ad
  - grep: only this
  - shellpipe: sort
timeout: 5
---
name: no URL
command: date
---
navigate: https://example.net/
filter: css:main,html2text
";

#[test]
fn what_changedetection_has_is_taken_over_or_said() {
    let watches = changedetection::read(CHANGEDETECTION).unwrap();
    assert_eq!(watches.len(), 2);
    let first = &watches[0];
    assert_eq!((first.url.as_str(), first.tags.as_slice()), ("https://example.org/", ["News".to_owned()].as_slice()));
    assert_eq!(first.keep, ["main .story", "div#a"]);
    assert_eq!((first.ignore.as_slice(), first.every_ms), ([".ad".to_owned()].as_slice(), Some(9_000_000)));
    assert_eq!(first.ignore_text, ["Visitor 12\\.", "(?i)seen \\d+ times"]);
    assert!(first.left.is_empty(), "{:?}", first.left);
    let second = &watches[1];
    assert_eq!(second.tags, ["shop", "prices"]);
    assert_eq!(second.left.len(), 4, "JSON, a path, steps in a browser, paused: {:?}", second.left);
    assert_eq!(changedetection::read("{\"url\":\"https://a.test/\"}").unwrap().len(), 1);
    assert!(changedetection::read("{").is_err() && changedetection::read("[1]").unwrap().is_empty());
}

#[test]
fn what_urlwatch_has_is_taken_over_or_said() {
    let watches = urlwatch::read(URLWATCH).unwrap();
    assert_eq!(watches.len(), 3);
    assert_eq!(watches[0].keep, ["main", "div#a", "#news"]);
    assert_eq!((watches[0].ignore_text.as_slice(), watches[0].left.len()), (["Visitor \\d+".to_owned()].as_slice(), 0));
    assert_eq!(
        (watches[1].keep.as_slice(), watches[1].ignore.as_slice()),
        ([".price".to_owned()].as_slice(), [".ad".to_owned()].as_slice())
    );
    assert_eq!(watches[1].left.len(), 3, "{:?}", watches[1].left);
    assert_eq!(
        (watches[2].url.as_str(), watches[2].keep.as_slice()),
        ("https://example.net/", ["main".to_owned()].as_slice())
    );
    assert!(urlwatch::read("a: [").is_err());
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nurl: *b\n";
    assert!(urlwatch::read(bomb).unwrap_err().contains("aliases"));
}
