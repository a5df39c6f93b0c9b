// Package schedule computes when a cron schedule starts runs. It is pure: it
// holds no clock and no goroutine, and time is passed in.
//
// [Parse] reads five cron fields and an IANA time zone into a [Spec]. [Spec.Next]
// gives its ticks one by one, [Spec.Due] says which of them to fire now. The
// label of a [Tick] is the run key: whoever starts a run for a tick, once,
// twice or on several machines, starts the run of that label.
//
// # When the clocks change
//
// A schedule whose hour field names hours (30 2 * * *, 0 9-17 * * *,
// 0 */2 * * *, @daily) follows the wall clock. A tick fires at the first
// instant at which the clocks of the zone have reached its local time, and its
// label is that local time without an offset:
//
//   - A local time that comes twice, in autumn, fires the first time and not
//     the second. 01:30 in New York on 2026-11-01 is 05:30Z.
//   - A local time that is skipped, in spring, fires once, at the first instant
//     after the gap, under its own label. 02:30 in New York on 2027-03-14 is
//     07:00Z, when the clocks show 03:00. This holds as well where the gap ends
//     at midnight and the instant belongs to the next date.
//   - Local times that fall on one instant, such as 02:00 and 02:30 in one gap,
//     are one tick with the label of the latest.
//   - A date that a zone leaves out altogether, as Apia did with 2011-12-30, has
//     no ticks.
//
// A schedule whose hour field is every hour (*, 0-23; */15 * * * *, @hourly)
// follows elapsed time. It fires at each instant at which the clocks show a
// scheduled minute, so it fires in both of two repeated hours, makes nothing up
// for a gap, and its labels are UTC minutes, which end in Z.
//
// # What the five fields accept
//
// Minute, hour, day of the month, month, weekday: numbers, names (JAN, MON),
// lists, ranges and steps. Sunday is 0 or 7. As in POSIX crontab, a day matches
// if either of its two fields does when both are restricted, that is, not *.
// Beyond POSIX: L is the last day of the month, L-3 the third before it, 15W
// the working day nearest to the 15th, LW the last working day, MON#1 the first
// Monday, FRI#L the last Friday; and @hourly, @daily, @midnight, @weekly,
// @monthly, @yearly, @annually.
package schedule
