//! The deadlines of all work under way, without threads.

use std::time::{Duration, Instant};

/// Identifies one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(u64);

/// The work that is under way.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    entries: Vec<Entry>,
    added: u64,
}

#[derive(Debug)]
struct Entry {
    id: Id,
    since: Instant,
    limit: Duration,
    label: String,
}

impl Entry {
    /// Time left. A limit may be longer than an `Instant` can count.
    fn left(&self, now: Instant) -> Duration {
        let spent = now.saturating_duration_since(self.since);
        self.limit.saturating_sub(spent)
    }
}

impl Deadlines {
    /// Work that begins `now`.
    pub(crate) fn add(&mut self, now: Instant, limit: Duration, label: String) -> Id {
        let id = Id(self.added);
        self.added += 1;
        self.entries.push(Entry {
            id,
            since: now,
            limit,
            label,
        });
        id
    }

    /// Other work under the same name, which begins `now`.
    pub(crate) fn replace(&mut self, id: Id, now: Instant, limit: Duration, label: String) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            entry.since = now;
            entry.limit = limit;
            entry.label = label;
        }
    }

    /// Work that is done.
    pub(crate) fn remove(&mut self, id: Id) {
        self.entries.retain(|entry| entry.id != id);
    }

    /// Whether no other is due before `id`.
    pub(crate) fn is_first(&self, id: Id) -> bool {
        self.first(Instant::now())
            .is_some_and(|entry| entry.id == id)
    }

    /// The time until the first is due; `None` if nothing is under way.
    pub(crate) fn next(&self, now: Instant) -> Option<Duration> {
        Some(self.first(now)?.left(now))
    }

    /// Label and limit of work that should be done by `now`: the work that was due first, if
    /// there is more.
    pub(crate) fn overdue(&self, now: Instant) -> Option<(&str, Duration)> {
        let due = self
            .entries
            .iter()
            .filter(|entry| entry.left(now).is_zero());
        let over = |entry: &&Entry| now.saturating_duration_since(entry.since) - entry.limit;
        due.max_by_key(over)
            .map(|entry| (entry.label.as_str(), entry.limit))
    }

    fn first(&self, now: Instant) -> Option<&Entry> {
        self.entries.iter().min_by_key(|entry| entry.left(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn work_is_overdue_when_its_own_limit_has_passed() {
        let (mut deadlines, start) = (Deadlines::default(), Instant::now());
        assert_eq!(deadlines.next(start), None);
        deadlines.add(start, seconds(10), "long".into());
        let short = deadlines.add(start + seconds(1), seconds(2), "short".into());
        assert_eq!(deadlines.next(start + seconds(1)), Some(seconds(2)));
        assert_eq!(deadlines.overdue(start + seconds(2)), None);
        assert_eq!(
            deadlines.overdue(start + seconds(3)),
            Some(("short", seconds(2)))
        );
        deadlines.remove(short);
        assert_eq!(deadlines.overdue(start + seconds(3)), None);
        assert_eq!(deadlines.next(start + seconds(3)), Some(seconds(7)));
        assert_eq!(
            deadlines.overdue(start + seconds(11)),
            Some(("long", seconds(10)))
        );
    }

    #[test]
    fn of_several_the_first_to_be_due_is_blamed() {
        let (mut deadlines, start) = (Deadlines::default(), Instant::now());
        deadlines.add(start, seconds(9), "second".into());
        deadlines.add(start + seconds(3), seconds(5), "first".into());
        let late = start + seconds(60);
        assert_eq!(deadlines.overdue(late), Some(("first", seconds(5))));
        assert_eq!(deadlines.next(late), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_renewed_begins_anew_under_another_name() {
        let (mut deadlines, start) = (Deadlines::default(), Instant::now());
        let id = deadlines.add(start, seconds(2), "before".into());
        deadlines.replace(id, start + seconds(1), seconds(3), "after".into());
        assert_eq!(deadlines.overdue(start + seconds(3)), None);
        assert_eq!(
            deadlines.overdue(start + seconds(4)),
            Some(("after", seconds(3)))
        );
    }

    #[test]
    fn only_the_first_to_be_due_is_first() {
        let (mut deadlines, start) = (Deadlines::default(), Instant::now());
        let long = deadlines.add(start, seconds(1000), "long".into());
        assert!(deadlines.is_first(long));
        let short = deadlines.add(start, seconds(500), "short".into());
        assert!(deadlines.is_first(short) && !deadlines.is_first(long));
        deadlines.replace(short, start, seconds(2000), "longer".into());
        assert!(deadlines.is_first(long));
    }

    #[test]
    fn a_limit_past_all_time_is_never_due() {
        let (mut deadlines, start) = (Deadlines::default(), Instant::now());
        deadlines.add(start, Duration::MAX, "for ever".into());
        let late = start + seconds(1_000_000);
        assert_eq!(deadlines.overdue(late), None);
    }
}
