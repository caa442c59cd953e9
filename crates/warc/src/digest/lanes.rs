//! SHA-1 of two messages at once.
//!
//! Each instruction of the processor's SHA extension waits for the one before it, so that a single message leaves the unit idle
//! most of the time. The rounds of two messages, taken in turn, fill those gaps: both are done in little more than the time of one.
//! Where the extension is missing, one message follows the other.
//!
//! This file has `unsafe` because the instructions exist only on some processors: whether they do is asked at run time, before the
//! one call that needs them.
#![allow(unsafe_code)]

use sha1::block_api::compress;

/// The five words between blocks.
pub(super) type State = [u32; 5];

/// One step of the algorithm takes this many bytes.
pub(super) const BLOCK_BYTES: usize = 64;

/// Takes the next blocks of two messages. What one has more of is taken after the common part.
pub(super) fn compress_both(states: [&mut State; 2], blocks: [&[[u8; BLOCK_BYTES]]; 2]) {
    let [one, other] = states;
    let common = blocks[0].len().min(blocks[1].len());
    let [(both_one, rest_one), (both_other, rest_other)] = blocks.map(|blocks| blocks.split_at(common));
    if !compress_common(one, other, both_one, both_other) {
        compress(one, both_one);
        compress(other, both_other);
    }
    compress(one, rest_one);
    compress(other, rest_other);
}

/// False where the processor cannot.
#[cfg(target_arch = "x86_64")]
fn compress_common(
    one: &mut State,
    other: &mut State,
    one_blocks: &[[u8; BLOCK_BYTES]],
    other_blocks: &[[u8; BLOCK_BYTES]],
) -> bool {
    if !is_x86_feature_detected!("sha") || !is_x86_feature_detected!("ssse3") || !is_x86_feature_detected!("sse4.1") {
        return false;
    }
    // SAFETY: the processor has all features that the function is compiled for.
    unsafe { x86::interleaved(one, other, one_blocks, other_blocks) };
    true
}

#[cfg(not(target_arch = "x86_64"))]
fn compress_common(_: &mut State, _: &mut State, _: &[[u8; BLOCK_BYTES]], _: &[[u8; BLOCK_BYTES]]) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{BLOCK_BYTES, State};
    use std::arch::x86_64::*;

    /// One message: words a to d with a highest, e in the highest word of its own vector, and the sixteen newest words of the
    /// schedule, four to a vector.
    #[derive(Clone, Copy)]
    struct Lane {
        abcd: __m128i,
        /// Before the first four rounds e itself; after them what e is derived from: `abcd` as it was four rounds ago.
        before: __m128i,
        words: [__m128i; 4],
    }

    /// Both messages, as many blocks as both have.
    #[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
    pub(super) fn interleaved(
        one: &mut State,
        other: &mut State,
        one_blocks: &[[u8; BLOCK_BYTES]],
        other_blocks: &[[u8; BLOCK_BYTES]],
    ) {
        let [(mut a, mut a_e), (mut b, mut b_e)] = [load_state(one), load_state(other)];
        for (a_block, b_block) in one_blocks.iter().zip(other_blocks) {
            let mut x = Lane { abcd: a, before: a_e, words: load_block(a_block) };
            let mut y = Lane { abcd: b, before: b_e, words: load_block(b_block) };
            // Twenty times four rounds; the constant and the function of the rounds change after every five.
            four::<0, 0>(&mut x, &mut y);
            four::<1, 0>(&mut x, &mut y);
            four::<2, 0>(&mut x, &mut y);
            four::<3, 0>(&mut x, &mut y);
            four::<4, 0>(&mut x, &mut y);
            four::<5, 1>(&mut x, &mut y);
            four::<6, 1>(&mut x, &mut y);
            four::<7, 1>(&mut x, &mut y);
            four::<8, 1>(&mut x, &mut y);
            four::<9, 1>(&mut x, &mut y);
            four::<10, 2>(&mut x, &mut y);
            four::<11, 2>(&mut x, &mut y);
            four::<12, 2>(&mut x, &mut y);
            four::<13, 2>(&mut x, &mut y);
            four::<14, 2>(&mut x, &mut y);
            four::<15, 3>(&mut x, &mut y);
            four::<16, 3>(&mut x, &mut y);
            four::<17, 3>(&mut x, &mut y);
            four::<18, 3>(&mut x, &mut y);
            four::<19, 3>(&mut x, &mut y);
            a_e = _mm_sha1nexte_epu32(x.before, a_e);
            b_e = _mm_sha1nexte_epu32(y.before, b_e);
            a = _mm_add_epi32(a, x.abcd);
            b = _mm_add_epi32(b, y.abcd);
        }
        store_state(one, a, a_e);
        store_state(other, b, b_e);
    }

    /// Rounds `4 * GROUP` to `4 * GROUP + 3` of both.
    #[inline]
    #[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
    fn four<const GROUP: usize, const FUNCTION: i32>(x: &mut Lane, y: &mut Lane) {
        let (x_in, y_in) = (round_input::<GROUP>(x), round_input::<GROUP>(y));
        (x.before, y.before) = (x.abcd, y.abcd);
        x.abcd = _mm_sha1rnds4_epu32::<FUNCTION>(x.abcd, x_in);
        y.abcd = _mm_sha1rnds4_epu32::<FUNCTION>(y.abcd, y_in);
    }

    /// e and the next four words of the schedule, added.
    #[inline]
    #[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
    fn round_input<const GROUP: usize>(lane: &mut Lane) -> __m128i {
        let w = &mut lane.words;
        if GROUP >= 4 {
            let mixed = _mm_xor_si128(_mm_sha1msg1_epu32(w[GROUP % 4], w[(GROUP + 1) % 4]), w[(GROUP + 2) % 4]);
            w[GROUP % 4] = _mm_sha1msg2_epu32(mixed, w[(GROUP + 3) % 4]);
        }
        if GROUP == 0 { _mm_add_epi32(lane.before, w[0]) } else { _mm_sha1nexte_epu32(lane.before, w[GROUP % 4]) }
    }

    #[inline]
    #[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
    fn load_block(block: &[u8; BLOCK_BYTES]) -> [__m128i; 4] {
        let reversed = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
        let at = block.as_ptr().cast::<__m128i>();
        // SAFETY: four times sixteen bytes are the block's sixty-four; these loads need no alignment.
        let raw = unsafe {
            [_mm_loadu_si128(at), _mm_loadu_si128(at.add(1)), _mm_loadu_si128(at.add(2)), _mm_loadu_si128(at.add(3))]
        };
        [
            _mm_shuffle_epi8(raw[0], reversed),
            _mm_shuffle_epi8(raw[1], reversed),
            _mm_shuffle_epi8(raw[2], reversed),
            _mm_shuffle_epi8(raw[3], reversed),
        ]
    }

    #[inline]
    #[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
    fn load_state(state: &State) -> (__m128i, __m128i) {
        let [a, b, c, d, e] = state.map(u32::cast_signed);
        (_mm_set_epi32(a, b, c, d), _mm_set_epi32(e, 0, 0, 0))
    }

    #[inline]
    #[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
    fn store_state(state: &mut State, abcd: __m128i, e: __m128i) {
        *state = [
            _mm_extract_epi32::<3>(abcd),
            _mm_extract_epi32::<2>(abcd),
            _mm_extract_epi32::<1>(abcd),
            _mm_extract_epi32::<0>(abcd),
            _mm_extract_epi32::<3>(e),
        ]
        .map(i32::cast_unsigned);
    }
}
