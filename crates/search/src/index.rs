//! The index of words: one document for each text of each URL. The library's own files, in `views/text`.

use crate::error::{Error, Result};
use crate::extract::Page;
use crate::limits::{CANDIDATES_MAX, WRITER_BYTES};
use crate::query::{Ask, Query};
use crate::words::WordTokenizer;
use skep_archive::Key;
use skep_url::{Match, Scan};
use std::ops::Bound;
use std::path::Path;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, RangeQuery, TermQuery};
use tantivy::schema::{
    Field, INDEXED, IndexRecordOption, NumericOptions, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};

const TOKENIZER: &str = "words";
/// How much more a word in the title says than one in the text.
const TITLE_BOOST: f32 = 3.0;

struct Fields {
    document: Field,
    key: Field,
    surt: Field,
    host: Field,
    site: Field,
    title: Field,
    text: Field,
    hash: Field,
    time: Field,
}

/// The index, open.
pub struct Index {
    index: tantivy::Index,
    reader: IndexReader,
    fields: Fields,
}

/// A document as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The key of its URL.
    pub key: Key,
    /// The hash of its text.
    pub text: u64,
    /// The time of the first capture with it.
    pub time_ms: i64,
}

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let words = TextOptions::default().set_indexing_options(words);
    let fields = Fields {
        document: schema.add_bytes_field("document", INDEXED),
        key: schema.add_bytes_field("key", STORED),
        surt: schema.add_text_field("surt", STRING),
        host: schema.add_text_field("host", STRING),
        site: schema.add_text_field("site", STRING),
        title: schema.add_text_field("title", words.clone()),
        text: schema.add_text_field("text", words),
        hash: schema.add_u64_field("hash", STORED),
        time: schema.add_i64_field("time", NumericOptions::default().set_fast().set_stored()),
    };
    (schema.build(), fields)
}

impl Index {
    /// Opens the index in a folder; nothing if there is none, or none that can be used.
    pub fn open(folder: &Path) -> Option<Index> {
        let (schema, fields) = schema();
        let index = tantivy::Index::open_in_dir(folder).ok().filter(|index| index.schema() == schema)?;
        Index::with(index, fields).ok()
    }

    /// Makes an empty one; the folder is there.
    pub fn create(folder: &Path) -> Result<Index> {
        let (schema, fields) = schema();
        Index::with(tantivy::Index::create_in_dir(folder, schema)?, fields)
    }

    fn with(index: tantivy::Index, fields: Fields) -> Result<Index> {
        index.tokenizers().register(TOKENIZER, TextAnalyzer::builder(WordTokenizer).build());
        // Whoever asks says when: after a commit.
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Index { index, reader, fields })
    }

    /// Begins to write. One at a time.
    pub fn writer(&self) -> Result<IndexWriter> {
        Ok(self.index.writer_with_num_threads(1, WRITER_BYTES)?)
    }

    /// Puts a document in the place of the one of the same name, if there is one.
    pub fn put(&self, writer: &IndexWriter, name: &[u8; 16], document: &Document, page: &Page) -> Result<()> {
        self.delete(writer, name);
        let fields = &self.fields;
        let surt = document.key.surt();
        let host = surt.split_once(')').map_or("", |(host, _)| host);
        let mut new = TantivyDocument::new();
        new.add_bytes(fields.document, name);
        new.add_bytes(fields.key, document.key.as_bytes());
        new.add_text(fields.surt, surt);
        new.add_text(fields.host, host);
        sites_of(host).for_each(|site| new.add_text(fields.site, site));
        new.add_text(fields.title, &page.title);
        new.add_text(fields.text, &page.text);
        new.add_u64(fields.hash, document.text);
        new.add_i64(fields.time, document.time_ms);
        writer.add_document(new)?;
        Ok(())
    }

    /// Deletes a document.
    pub fn delete(&self, writer: &IndexWriter, name: &[u8; 16]) {
        writer.delete_term(Term::from_field_bytes(self.fields.document, name));
    }

    /// Writes files anew that still hold words of deleted documents.
    pub fn purge(&self, writer: &mut IndexWriter) -> Result<()> {
        for segment in self.index.searchable_segment_metas()? {
            if segment.num_deleted_docs() > 0 {
                // One that is being merged already loses them on the way.
                let _either_way = writer.merge(&[segment.id()]).wait();
            }
        }
        self.reader.reload()?;
        writer.garbage_collect_files().wait()?;
        Ok(())
    }

    /// Sees what was committed.
    pub fn reload(&self) -> Result<()> {
        Ok(self.reader.reload()?)
    }

    /// Documents, the best first, from number `skip` on: those with a text of `at_ms` or before, where that is asked.
    pub fn find(
        &self,
        query: &Query,
        within: Option<&Scan>,
        at_ms: Option<i64>,
        skip: usize,
        count: usize,
    ) -> Result<Vec<Document>> {
        self.documents(&self.query(query, within, at_ms), skip, count)
    }

    /// The documents of a URL that are committed.
    pub fn of_url(&self, key: &Key) -> Result<Vec<Document>> {
        let mut found = self.documents(&*one(self.fields.surt, key.surt()), 0, CANDIDATES_MAX)?;
        found.retain(|document| document.key == *key);
        Ok(found)
    }

    fn documents(&self, query: &dyn tantivy::query::Query, skip: usize, count: usize) -> Result<Vec<Document>> {
        let searcher = self.reader.searcher();
        let best = searcher.search(query, &TopDocs::with_limit(count).and_offset(skip).order_by_score())?;
        let mut found = Vec::with_capacity(best.len());
        for (_, address) in best {
            let stored: TantivyDocument = searcher.doc(address)?;
            let value = |field| stored.get_first(field);
            let document = || {
                Some(Document {
                    key: Key::from_bytes(value(self.fields.key)?.as_bytes()?)?,
                    text: value(self.fields.hash)?.as_u64()?,
                    time_ms: value(self.fields.time)?.as_i64()?,
                })
            };
            found.push(document().ok_or_else(|| Error::Index("a document is not what was written".to_owned()))?);
        }
        Ok(found)
    }

    fn query(&self, query: &Query, within: Option<&Scan>, at_ms: Option<i64>) -> BooleanQuery {
        let fields = &self.fields;
        let mut parts: Vec<(Occur, Box<dyn tantivy::query::Query>)> = Vec::new();
        for part in &query.parts {
            let asked: Box<dyn tantivy::query::Query> = match &part.ask {
                Ask::Words(words) => Box::new(BooleanQuery::new(vec![
                    (Occur::Should, Box::new(BoostQuery::new(phrase(fields.title, words), TITLE_BOOST))),
                    (Occur::Should, phrase(fields.text, words)),
                ])),
                Ask::Title(words) => phrase(fields.title, words),
                Ask::Site(site) => filter(one(fields.site, site)),
                Ask::Host(host) => filter(one(fields.host, host)),
            };
            parts.push((if part.wanted { Occur::Must } else { Occur::MustNot }, asked));
        }
        if let Some(scan) = within {
            let term = |surt: &str| Term::from_field_text(fields.surt, surt);
            let range: Box<dyn tantivy::query::Query> = match scan.kind {
                Match::Exact => one(fields.surt, &scan.start),
                _ => Box::new(RangeQuery::new(Bound::Included(term(&scan.start)), Bound::Excluded(term(&scan.end)))),
            };
            parts.push((Occur::Must, filter(range)));
        }
        if let Some(at_ms) = at_ms {
            let not_after = Bound::Included(Term::from_field_i64(fields.time, at_ms));
            parts.push((Occur::Must, filter(Box::new(RangeQuery::new(Bound::Unbounded, not_after)))));
        }
        BooleanQuery::new(parts)
    }
}

/// A condition that says nothing about how good a document is.
fn filter(query: Box<dyn tantivy::query::Query>) -> Box<dyn tantivy::query::Query> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}

fn one(field: Field, word: &str) -> Box<dyn tantivy::query::Query> {
    Box::new(TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs))
}

fn phrase(field: Field, words: &[String]) -> Box<dyn tantivy::query::Query> {
    match words {
        [word] => one(field, word),
        words => Box::new(PhraseQuery::new(words.iter().map(|word| Term::from_field_text(field, word)).collect())),
    }
}

/// `org,example,www:8080` → itself, then `org,example,www`, `org,example`, `org`.
fn sites_of(host: &str) -> impl Iterator<Item = &str> {
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    let above = std::iter::successors(Some(name), |name| name.rsplit_once(',').map(|(above, _)| above));
    std::iter::once(host).filter(move |host| *host != name).chain(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_below_sites() {
        let sites = |host| sites_of(host).collect::<Vec<_>>().join(" ");
        assert_eq!(sites("org,example,www:8080"), "org,example,www:8080 org,example,www org,example org");
        assert_eq!(sites("org,example"), "org,example org");
        assert_eq!(sites("192.0.2.1"), "192.0.2.1");
    }
}
