//! The memory of the process.

/// What a worker takes, another thread gives back, dozens of times a page: that is what this allocator is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay`: its number is the same in all versions of the allocator's interface.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// How long memory that nobody uses is kept from the system, in milliseconds.
const GIVEN_BACK_AFTER_MS: std::ffi::c_long = 10;

/// Memory that is free goes back to the system soon. Within the second that the allocator waits by itself, each of the dozens of threads that
/// answer gathers pages which none of the others may use: a portal under load held twice what it needs, and ever more for most of an hour.
/// A variable of the environment (`MIMALLOC_PURGE_DELAY`) still decides.
pub fn give_back_soon() {
    // Safe: called once, before there is another thread; an option that does not exist is ignored.
    #[expect(unsafe_code, reason = "the allocator's options have no other interface")]
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, GIVEN_BACK_AFTER_MS);
    }
}
