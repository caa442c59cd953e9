//! A disk with little room, as a node's folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of its own; gone with this.
pub struct Small(PathBuf);

impl Small {
    /// With so many megabytes.
    pub fn mount(folder: &Path, megabytes: u32) -> Small {
        std::fs::create_dir_all(folder).expect("a folder");
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "skep-test"]).arg(folder).output();
        let mounted = mounted.expect("`mount` is there");
        assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
        Small(folder.to_owned())
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Somebody else takes all of it.
    pub fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).expect("a file");
        let zeros = vec![0; 64 << 10];
        while file.write_all(&zeros).is_ok() {}
    }

    /// There is room again.
    pub fn empty(&self) {
        std::fs::remove_file(self.filler()).expect("it was there");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Also while somebody still looks into it.
        let _gone_with_its_folder = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}
