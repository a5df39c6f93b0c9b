package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the same zones on a machine that has none installed

	"github.com/netresearch/go-cron"

	"github.com/semel-dev/semel"
)

// Spec is a cron schedule in a time zone. The zero Spec never fires. A Spec is
// safe for concurrent use.
type Spec struct {
	// calendar works on local times that are held as if they were UTC, where no
	// clock ever changes; zone turns them into instants.
	calendar *cron.SpecSchedule
	zone     zone
	elapsed  bool // follows elapsed time, not the wall clock
}

// Parse reads a cron expression of five fields, or a descriptor such as
// @daily, for an IANA time zone. It fails with *semel.InputError, also for an
// expression that never fires, such as one for the 30th of February.
func Parse(expr, zoneName string) (Spec, error) {
	calendar, err := parseCron(strings.TrimSpace(expr))
	if err != nil {
		return Spec{}, err
	}
	z, err := loadZone(zoneName)
	if err != nil {
		return Spec{}, err
	}
	return Spec{calendar: calendar, zone: z, elapsed: calendar.Hour&everyHour == everyHour}, nil
}

// everyHour has the bits of the 24 hours.
const everyHour = 1<<24 - 1

// calendarCycle is the number of years after which dates and weekdays repeat:
// what does not fire in so many never does.
const calendarCycle = 400

// field is one of the five, with what it accepts.
type field struct{ name, accepts string }

var fields = [...]field{
	{"minute", "write 0 to 59, for example 0, 0,30 or */15"},
	{"hour", "write 0 to 23, for example 9, 9-17 or *"},
	{"day of the month", "write 1 to 31, L for the last day, or 15W for the working day nearest to the 15th"},
	{"month", "write 1 to 12 or JAN to DEC"},
	{"weekday", "write 0 to 7 (Sunday is 0 and 7) or SUN to SAT, or MON#1 for the first Monday of the month"},
}

func parseCron(expr string) (*cron.SpecSchedule, error) {
	words := strings.Fields(expr)
	switch {
	case expr == "":
		return nil, &semel.InputError{Field: "cron", Problem: "is empty", Hint: "write five fields: minute hour day month weekday, for example 30 2 * * *"}
	case len(expr) > cron.MaxSpecLength:
		return nil, &semel.InputError{
			Field: "cron", Problem: fmt.Sprintf("has %d bytes, the limit is %d", len(expr), cron.MaxSpecLength),
			Hint: "use ranges and steps, or several schedules",
		}
	case strings.HasPrefix(strings.ToUpper(expr), "TZ=") || strings.HasPrefix(strings.ToUpper(expr), "CRON_TZ="):
		return nil, &semel.InputError{Field: "cron", Problem: fmt.Sprintf("names a zone (%s)", words[0]), Hint: "give the zone beside the cron expression, not in it"}
	case strings.HasPrefix(strings.ToLower(expr), "@every"):
		return nil, &semel.InputError{Field: "cron", Problem: fmt.Sprintf("%q has no fixed instants", expr), Hint: "write a step, for example */5 * * * * for every five minutes"}
	case expr[0] != '@' && len(words) != len(fields):
		return nil, &semel.InputError{
			Field: "cron", Problem: fmt.Sprintf("%q has %d fields, not 5", expr, len(words)),
			Hint: "write minute hour day month weekday, without seconds and years, for example 30 2 * * *",
		}
	}
	calendar, err := parseCalendar(expr)
	switch {
	case err != nil && expr[0] == '@':
		return nil, &semel.InputError{
			Field: "cron", Problem: fmt.Sprintf("%q is unknown", expr),
			Hint: "use one of @hourly, @daily, @weekly, @monthly, @yearly, or five fields",
		}
	case err != nil:
		return nil, badField(words, err)
	case calendar.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero():
		return nil, &semel.InputError{
			Field: "cron", Problem: fmt.Sprintf("%q never fires", expr),
			Hint: "no month it names has such a day: change the day or the month",
		}
	}
	return calendar, nil
}

// parseCalendar refuses, besides what the library does, what the library reads
// as something else than it says: an empty list item as nothing at all, and a
// range from * as *. It hands over lower case, since the library takes the H
// of THU for a hash.
func parseCalendar(expr string) (*cron.SpecSchedule, error) {
	for item := range strings.FieldsSeq(expr) {
		switch {
		case strings.HasPrefix(item, ",") || strings.HasSuffix(item, ",") || strings.Contains(item, ",,"):
			return nil, errors.New("an item of its list is empty")
		case strings.Contains(item, "*-") || strings.Contains(item, "?-"):
			return nil, errors.New("a range begins with a number or a name")
		}
	}
	parser := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.Extended | cron.DowOrDom)
	parsed, err := parser.WithMaxSearchYears(calendarCycle).Parse(strings.ToLower(expr))
	if err != nil {
		return nil, err
	}
	calendar, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("no calendar")
	}
	calendar.Location = time.UTC
	return calendar, nil
}

// badField says which of five fields is wrong, by reading each alone.
func badField(words []string, err error) error {
	for i, word := range words {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = word
		if _, err := parseCalendar(strings.Join(alone, " ")); err != nil {
			why := err.Error()
			if _, ok := errors.AsType[*strconv.NumError](err); ok {
				why = "it is neither a number nor a name"
			}
			return &semel.InputError{Field: "cron " + fields[i].name, Problem: fmt.Sprintf("%q cannot be read, %s", word, why), Hint: fields[i].accepts}
		}
	}
	return &semel.InputError{Field: "cron", Problem: "cannot be read: " + err.Error()}
}
