//! Pictures as the browser gives them: PNG of eight bits per channel, without interlacing. As much of the format as that needs.

use std::io::Read;

/// Pixels in rows, three or four bytes each.
pub struct Picture {
    width: usize,
    channels: usize,
    pixels: Vec<u8>,
}

impl Picture {
    pub fn read(file: &[u8]) -> Picture {
        let mut at = 8;
        let (mut width, mut height, mut channels) = (0, 0, 0);
        let mut packed = Vec::new();
        while at + 8 <= file.len() {
            let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
            let (length, kind) = (number(at), &file[at + 4..at + 8]);
            let data = &file[at + 8..at + 8 + length];
            match kind {
                b"IHDR" => {
                    (width, height) = (number(at + 8), number(at + 12));
                    channels = match (data[8], data[9], data[12]) {
                        (8, 2, 0) => 3,
                        (8, 6, 0) => 4,
                        other => panic!("a picture of another kind: {other:?}"),
                    };
                }
                b"IDAT" => packed.extend_from_slice(data),
                _ => {}
            }
            at += length + 12;
        }
        let mut rows = Vec::new();
        flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut rows).unwrap();
        let stride = width * channels;
        let mut pixels = vec![0; stride * height];
        for (y, row) in rows.chunks_exact(stride + 1).enumerate() {
            for x in 0..stride {
                let left = if x >= channels { pixels[y * stride + x - channels] } else { 0 };
                let above = if y > 0 { pixels[(y - 1) * stride + x] } else { 0 };
                let corner = if x >= channels && y > 0 { pixels[(y - 1) * stride + x - channels] } else { 0 };
                let guess = match row[0] {
                    0 => 0,
                    1 => left,
                    2 => above,
                    3 => u8::midpoint(left, above),
                    _ => paeth(left, above, corner),
                };
                pixels[y * stride + x] = row[1 + x].wrapping_add(guess);
            }
        }
        Picture { width, channels, pixels }
    }

    /// Red, green and blue at a place; black outside.
    pub fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * self.channels;
        self.pixels.get(at..at + 3).map_or([0; 3], |three| [three[0], three[1], three[2]])
    }
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i32::from);
    let estimate = a + b - c;
    let (da, db, dc) = ((estimate - a).abs(), (estimate - b).abs(), (estimate - c).abs());
    if da <= db && da <= dc {
        left
    } else if db <= dc {
        above
    } else {
        corner
    }
}
