//! The classes of change.

use std::fmt;

macro_rules! classes {
    ($($(#[$doc:meta])* $bit:literal $class:ident $name:literal;)*) => {
        /// What a change is. The strongest first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Class {
            $($(#[$doc])* $class = $bit,)*
        }

        impl Class {
            /// Every class, the strongest first.
            pub const ALL: &'static [Class] = &[$(Class::$class,)*];

            /// Its name in records, in answers and on the command line. It never changes.
            pub fn name(self) -> &'static str {
                match self { $(Class::$class => $name,)* }
            }
        }
    };
}

// The numbers are stored; they never change.
classes! {
    /// No page of a host was to be had for long.
    15 HostDown "host.down";
    /// Pages of it are to be had again.
    16 HostUp "host.up";
    /// Its start page leads to another host for good.
    17 HostMoved "host.moved";
    /// What it asks of robots changed.
    18 HostRobots "host.robots";
    /// Its list of pages changed.
    19 HostSitemap "host.sitemap";
    /// Many of its pages changed in the same place on the same day.
    20 HostTemplate "host.template";
    /// The first good copy of a URL.
    0 New "new";
    /// Nothing is there any more, and that was confirmed.
    1 Gone "gone";
    /// Something is there again.
    2 Returned "returned";
    /// A permanent redirect leads elsewhere.
    3 Moved "moved";
    /// At least a twentieth of the words changed.
    4 TextMajor "text.major";
    /// Fewer words changed.
    5 TextMinor "text.minor";
    /// The text is again what it was some versions ago.
    6 Reverted "reverted";
    /// Structured data changed, or the bytes of a file that is no text.
    7 Data "data";
    /// It leads elsewhere than before.
    8 Links "links";
    /// Title, description, canonical URL, language or directives changed.
    9 Meta "meta";
    /// No page at all: a test for robots, an outage, a page that says that nothing is there.
    10 Suspect "suspect";
    /// Only what many pages of its host share changed; the host's event tells of it.
    14 Template "template";
    /// Only parts changed that change all the time.
    11 Volatile "volatile";
    /// It looks different and says the same.
    12 Markup "markup";
    /// Only bytes changed that nobody sees.
    13 Bytes "bytes";
}

impl Class {
    /// Noise: counted, and told only to those who ask for it.
    pub fn is_silent(self) -> bool {
        matches!(self, Class::Suspect | Class::Template | Class::Volatile | Class::Markup | Class::Bytes)
    }

    /// It is about a host, not about one page of it.
    pub fn is_of_host(self) -> bool {
        self as u8 >= Class::HostDown as u8
    }

    /// The class of this name.
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ALL.iter().copied().find(|class| class.name() == name)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Several classes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Classes(pub u32);

impl Classes {
    /// One class.
    pub fn of(class: Class) -> Classes {
        Classes(1 << class as u32)
    }

    /// The classes that people mean by a name: `text` is `text.major` and `text.minor`, `host` whatever is about hosts, `all` is every class.
    pub fn from_name(name: &str) -> Option<Classes> {
        let mut classes = Classes::default();
        for class in Class::ALL {
            let named = class.name() == name || class.name().split('.').next() == Some(name) || name == "all";
            if named {
                classes.insert(*class);
            }
        }
        (classes.0 != 0).then_some(classes)
    }

    /// Adds a class.
    pub fn insert(&mut self, class: Class) {
        self.0 |= 1 << class as u32;
    }

    /// Takes a class out.
    pub fn remove(&mut self, class: Class) {
        self.0 &= !(1 << class as u32);
    }

    /// Is it one of them?
    pub fn contains(self, class: Class) -> bool {
        self.0 & 1 << class as u32 != 0
    }

    /// Are there none?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Is one of them among these?
    pub fn meets(self, others: Classes) -> bool {
        self.0 & others.0 != 0
    }

    /// Is all of it noise?
    pub fn is_silent(self) -> bool {
        self.iter().all(Class::is_silent)
    }

    /// The classes, the strongest first.
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::ALL.iter().copied().filter(move |class| self.contains(*class))
    }

    /// The strongest.
    pub fn first(self) -> Option<Class> {
        self.iter().next()
    }
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Class::name)).finish()
    }
}

impl FromIterator<Class> for Classes {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Classes {
        let mut all = Classes::default();
        classes.into_iter().for_each(|class| all.insert(class));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_classes() {
        for class in Class::ALL {
            assert_eq!(Class::from_name(class.name()), Some(*class));
            assert!(Classes::from_name(class.name()).unwrap().contains(*class));
        }
        let text = Classes::from_name("text").unwrap();
        assert_eq!(text, [Class::TextMajor, Class::TextMinor].into_iter().collect());
        assert_eq!(Classes::from_name("all").unwrap().iter().count(), Class::ALL.len());
        assert_eq!(Classes::from_name("txt"), None);
    }
}
