package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schedule"
)

func parse(t testing.TB, cron, zone string) schedule.Spec {
	t.Helper()
	spec, err := schedule.Parse(cron, zone)
	if err != nil {
		t.Fatalf("Parse(%q, %q): %v", cron, zone, err)
	}
	return spec
}

func at(t testing.TB, rfc3339 string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.UTC()
}

func TestBadInputSaysWhatWhereAndTheFix(t *testing.T) {
	const (
		zoneHint = "name a zone of the IANA database, for example Europe/Berlin, or UTC; case matters"
		sixHint  = "write minute hour day month weekday, without seconds and years, for example 30 2 * * *"
	)
	tests := map[string]struct {
		cron, zone string
		want       semel.InputError
	}{
		"empty cron":       {" ", "UTC", semel.InputError{Field: "cron", Problem: "is empty", Hint: "write five fields: minute hour day month weekday, for example 30 2 * * *"}},
		"too long":         {strings.Repeat("0,", 600) + "0 * * * *", "UTC", semel.InputError{Field: "cron", Problem: "has 1209 bytes, the limit is 1024", Hint: "use ranges and steps, or several schedules"}},
		"six fields":       {"0 30 2 * * *", "UTC", semel.InputError{Field: "cron", Problem: `"0 30 2 * * *" has 6 fields, not 5`, Hint: sixHint}},
		"four fields":      {"30 2 * *", "UTC", semel.InputError{Field: "cron", Problem: `"30 2 * *" has 4 fields, not 5`, Hint: sixHint}},
		"zone inside":      {"TZ=Europe/Berlin 30 2 * * *", "UTC", semel.InputError{Field: "cron", Problem: "names a zone (TZ=Europe/Berlin)", Hint: "give the zone beside the cron expression, not in it"}},
		"cron zone inside": {"cron_tz=UTC 30 2 * * *", "UTC", semel.InputError{Field: "cron", Problem: "names a zone (cron_tz=UTC)", Hint: "give the zone beside the cron expression, not in it"}},
		"interval":         {"@every 5m", "UTC", semel.InputError{Field: "cron", Problem: `"@every 5m" has no fixed instants`, Hint: "write a step, for example */5 * * * * for every five minutes"}},
		"descriptor":       {"@reboot", "UTC", semel.InputError{Field: "cron", Problem: `"@reboot" is unknown`, Hint: "use one of @hourly, @daily, @weekly, @monthly, @yearly, or five fields"}},
		"hour 24":          {"0 24 * * *", "UTC", semel.InputError{Field: "cron hour", Problem: `"24" cannot be read, end of range (24) above maximum (23): "24"`, Hint: "write 0 to 23, for example 9, 9-17 or *"}},
		"no number":        {"x * * * *", "UTC", semel.InputError{Field: "cron minute", Problem: `"x" cannot be read, it is neither a number nor a name`, Hint: "write 0 to 59, for example 0, 0,30 or */15"}},
		"hash":             {"H * * * *", "UTC", semel.InputError{Field: "cron minute", Problem: `"H" cannot be read, it is neither a number nor a name`, Hint: "write 0 to 59, for example 0, 0,30 or */15"}},
		"empty item":       {"0 9,,10 * * *", "UTC", semel.InputError{Field: "cron hour", Problem: `"9,,10" cannot be read, an item of its list is empty`, Hint: "write 0 to 23, for example 9, 9-17 or *"}},
		"only a comma":     {", * * * *", "UTC", semel.InputError{Field: "cron minute", Problem: `"," cannot be read, an item of its list is empty`, Hint: "write 0 to 59, for example 0, 0,30 or */15"}},
		"range from star":  {"0 *-5 * * *", "UTC", semel.InputError{Field: "cron hour", Problem: `"*-5" cannot be read, a range begins with a number or a name`, Hint: "write 0 to 23, for example 9, 9-17 or *"}},
		"range from any":   {"0 ?-5 * * *", "UTC", semel.InputError{Field: "cron hour", Problem: `"?-5" cannot be read, a range begins with a number or a name`, Hint: "write 0 to 23, for example 9, 9-17 or *"}},
		"30 February":      {"0 0 30 2 *", "UTC", semel.InputError{Field: "cron", Problem: `"0 0 30 2 *" never fires`, Hint: "no month it names has such a day: change the day or the month"}},
		"31 April, June":   {"0 0 31 4,6 *", "UTC", semel.InputError{Field: "cron", Problem: `"0 0 31 4,6 *" never fires`, Hint: "no month it names has such a day: change the day or the month"}},
		"empty zone":       {"0 0 * * *", "", semel.InputError{Field: "zone", Problem: "is empty", Hint: zoneHint}},
		"local zone":       {"0 0 * * *", "Local", semel.InputError{Field: "zone", Problem: `"Local" is another one on each machine`, Hint: zoneHint}},
		"unknown zone":     {"0 0 * * *", "Europe/Atlantis", semel.InputError{Field: "zone", Problem: `"Europe/Atlantis" is unknown`, Hint: zoneHint}},
		"leap seconds":     {"0 0 * * *", "right/UTC", semel.InputError{Field: "zone", Problem: `"right/UTC" counts leap seconds`, Hint: "leave out right/"}},
		"file as zone":     {"0 0 * * *", "../../etc/localtime", semel.InputError{Field: "zone", Problem: `"../../etc/localtime" is unknown`, Hint: zoneHint}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := schedule.Parse(test.cron, test.zone)
			got, ok := errors.AsType[*semel.InputError](err)
			if !ok {
				t.Fatalf("error %v, want an *semel.InputError", err)
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRareDaysAreFound(t *testing.T) {
	tests := map[string]struct{ cron, after, want string }{
		"leap day":                  {"0 0 29 2 *", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		"leap day over 2100":        {"0 0 29 FEB *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		"five Mondays in February":  {"0 0 * 2 MON#5", "2024-03-01T00:00:00Z", "2044-02-29T00:00:00Z"},
		"last day of the month":     {"0 0 L * *", "2027-02-01T00:00:00Z", "2027-02-28T00:00:00Z"},
		"third before the last day": {"0 0 L-3 * *", "2027-02-01T00:00:00Z", "2027-02-25T00:00:00Z"},
		"first Monday":              {"0 9 * * MON#1", "2027-03-02T00:00:00Z", "2027-04-05T09:00:00Z"},
		"last Friday":               {"0 9 * * FRI#L", "2027-03-02T00:00:00Z", "2027-03-26T09:00:00Z"},
		"working day near the 15th": {"0 9 15W * *", "2027-05-01T00:00:00Z", "2027-05-14T09:00:00Z"},
		"the 13th or a Friday":      {"0 0 13 * 5", "2027-03-12T00:00:00Z", "2027-03-13T00:00:00Z"},
		"names in capitals":         {"0 0 * MAR THU", "2027-03-01T00:00:00Z", "2027-03-04T00:00:00Z"},
		"Sunday as 7":               {"0 0 * * 7", "2027-03-01T00:00:00Z", "2027-03-07T00:00:00Z"},
		"over the end of the week":  {"0 0 * * FRI-SUN", "2027-03-06T00:00:00Z", "2027-03-07T00:00:00Z"},
		"weekly":                    {"@Weekly", "2027-03-01T00:00:00Z", "2027-03-07T00:00:00Z"},
		"yearly":                    {"@yearly", "2027-03-01T00:00:00Z", "2028-01-01T00:00:00Z"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := parse(t, test.cron, "UTC").Next(at(t, test.after))
			if diff := cmp.Diff(at(t, test.want), got.At); diff != "" {
				t.Errorf("Next (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, cron := range []string{"30 2 * * *", "*/15 * * * *", "@hourly", "@every 1s", "TZ=0", "0 0 30 2 *", "0 0 L-30 2 *", ",", "0 0 1-7 * MON#5", "0 22-2/3 28-3 NOV-FEB FRI-MON"} {
		f.Add(cron, "America/New_York", int64(1_772_000_000))
	}
	f.Add("* * * * *", "Africa/Monrovia", int64(63_592_000))
	f.Add("0 0 * * *", "Pacific/Apia", int64(1_325_100_000))
	f.Fuzz(func(t *testing.T, cron, zone string, unix int64) {
		spec, err := schedule.Parse(cron, zone)
		if err != nil {
			if input, ok := errors.AsType[*semel.InputError](err); !ok || input.Hint == "" {
				t.Fatalf("Parse(%q, %q): %v, want an *semel.InputError with a hint", cron, zone, err)
			}
			return
		}
		after := time.Unix(unix%4_000_000_000, 0)
		labels := map[string]bool{}
		for range 5 {
			tick, ok := spec.Next(after)
			if !ok || !tick.At.After(after) || labels[tick.Label] {
				t.Fatalf("%q in %s: tick %+v, %v after %v, labels so far %v", cron, zone, tick, ok, after, labels)
			}
			after, labels[tick.Label] = tick.At, true
		}
	})
}
