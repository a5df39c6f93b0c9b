package schedule_test

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel/schedule"
)

func ExampleParse() {
	_, err := schedule.Parse("0 25 * * *", "Europe/Berlin")
	fmt.Println(err)
	_, err = schedule.Parse("0 0 30 2 *", "Europe/Berlin")
	fmt.Println(err)
	// Output:
	// cron hour "25" cannot be read, end of range (25) above maximum (23): "25": write 0 to 23, for example 9, 9-17 or *
	// cron "0 0 30 2 *" never fires: no month it names has such a day: change the day or the month
}

// 02:30 does not exist on the day the clocks go forward; the run of that day
// starts at once after the gap.
func ExampleSpec_Next() {
	spec, err := schedule.Parse("30 2 * * *", "America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	after := time.Date(2027, 3, 13, 0, 0, 0, 0, time.UTC)
	for range 3 {
		tick, _ := spec.Next(after)
		fmt.Println(tick.Label, tick.At.Format(time.RFC3339), tick.Local)
		after = tick.At
	}
	// Output:
	// 2027-03-13T02:30 2027-03-13T07:30:00Z 2027-03-13T02:30:00-05:00
	// 2027-03-14T02:30 2027-03-14T07:00:00Z 2027-03-14T03:00:00-04:00
	// 2027-03-15T02:30 2027-03-15T06:30:00Z 2027-03-15T02:30:00-04:00
}

func ExampleSpec_Due() {
	spec, err := schedule.Parse("@hourly", "UTC")
	if err != nil {
		fmt.Println(err)
		return
	}
	last := time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)
	now := last.Add(3*time.Hour + 30*time.Minute) // three ticks passed
	for _, missed := range []schedule.Missed{schedule.Once, schedule.Skip, schedule.All} {
		due := spec.Due(last, now, missed, 2)
		fmt.Print(missed, ": fire")
		for _, tick := range due.Fire {
			fmt.Print(" ", tick.Label)
		}
		fmt.Println(", skipped", due.Skipped, "next", due.Next.Label)
	}
	// Output:
	// once: fire 2027-03-01T13:00Z, skipped 2 next 2027-03-01T14:00Z
	// skip: fire, skipped 3 next 2027-03-01T14:00Z
	// all: fire 2027-03-01T11:00Z 2027-03-01T12:00Z, skipped 0 next 2027-03-01T13:00Z
}

func ExampleMissed_Validate() {
	fmt.Println(schedule.Missed("never").Validate())
	// Output:
	// missed "never" is unknown: use once, skip or all
}
