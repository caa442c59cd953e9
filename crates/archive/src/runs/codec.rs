//! What a kind of entry must offer so that runs of it can be written, searched and merged.

use crate::Result;

/// Sorted rows of a block.
pub trait Rows {
    /// How many.
    fn rows(&self) -> usize;
    /// The first row whose key is not below `bound`; the number of rows if all are.
    fn search(&self, bound: &[u8]) -> usize;
    /// The same where it is known to be `row` or one behind it, most likely not far.
    fn search_from(&self, _row: usize, bound: &[u8]) -> usize {
        self.search(bound)
    }
    /// Appends the key of a row.
    fn write_key(&self, row: usize, out: &mut Vec<u8>);
    /// Memory taken.
    fn weight(&self) -> usize;
    /// Lets go of what was only needed to read the block, because it is going to be kept.
    fn slim(&mut self) {}
}

/// Collects the rows of one block.
pub trait Builder<C: Codec>: Default + Send {
    /// Adds a row that sorts behind those before it.
    fn push(&mut self, row: &C::Row<'_>) -> Result<()>;
    /// Whether the block should end here.
    fn is_full(&self) -> bool;
    /// How many rows were added.
    fn rows(&self) -> usize;
    /// Writes key of the first row, block and hashes of what is looked for, and begins the next block.
    fn finish(&mut self, out: &mut BlockParts) -> Result<()>;
}

/// What a finished block hands to the file.
#[derive(Default)]
pub struct BlockParts {
    pub first: Vec<u8>,
    pub payload: Vec<u8>,
    pub hashes: Vec<u64>,
}

/// A kind of entry: an entry alone is a key and a value; many together make a block.
pub trait Codec: Send + Sync + Sized + 'static {
    /// The number in the footer of a run; it never changes.
    const NUMBER: u8;
    type Block: Rows + Send + Sync;
    type Builder: Builder<Self>;
    type Row<'a>;

    /// Reads a block of `length` bytes, behind which there is padding; `None` if no writer made these bytes.
    fn decode(bytes: Vec<u8>, length: usize, rows: usize) -> Option<Self::Block>;
    /// A row of a block.
    fn row(block: &Self::Block, index: usize) -> Self::Row<'_>;
    /// A row from an entry alone; `None` if no writer made these bytes.
    fn alone<'a>(key: &'a [u8], value: &'a [u8]) -> Option<Self::Row<'a>>;
}

/// The hash by which filters know the part of a key that is looked for.
pub fn filter_hash(looked_for: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(looked_for)
}
