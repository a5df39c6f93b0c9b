package demo

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel/sandbox"
)

func TestInvoices(t *testing.T) {
	due, err := invoices(700)
	if err != nil {
		t.Fatal(err)
	}
	numbers, same, customers := map[string]bool{}, map[invoice][]string{}, map[string]int{}
	for _, i := range due {
		if i.Amount <= 0 || i.Customer == "" || numbers[i.Number] {
			t.Errorf("invoice %+v", i)
		}
		numbers[i.Number] = true
	}
	for _, i := range due[:300] {
		customers[i.Customer]++
		number := i.Number
		i.Number = ""
		same[i] = append(same[i], number)
	}
	var twins []string
	for _, all := range same {
		if len(all) > 1 {
			twins = append(twins, strings.Join(all, " "))
		}
	}
	if diff := cmp.Diff([]string{"4409 4414"}, twins); diff != "" {
		t.Errorf("identical invoices (-want +got):\n%s", diff)
	}
	if len(customers) >= 200 {
		t.Errorf("%d customers for 300 invoices, want several invoices each", len(customers))
	}
}

// TestMailLosesAtLeastOne: however small the night.
func TestMailLosesAtLeastOne(t *testing.T) {
	for seed := range uint64(20) {
		n := &night{Invoices: 5, Lose: 0.1, Seed: seed + 1}
		due, err := invoices(n.Invoices)
		if err != nil {
			t.Fatal(err)
		}
		if rate := rates(n, due)[sandbox.Messages]; !losesMail(n.Seed, rate, due) {
			t.Errorf("seed %d loses no mail at %v", n.Seed, rate.First)
		}
		n.Lose = 0
		if rate := rates(n, due)[sandbox.Messages]; rate.First != 0 {
			t.Errorf("mail loses %v of its answers, want none", rate.First)
		}
	}
}

func TestDoomedAreChosenBySeed(t *testing.T) {
	due, err := invoices(20)
	if err != nil {
		t.Fatal(err)
	}
	chosen := doomed(&night{Kill: 4, Seed: 1}, due)
	if diff := cmp.Diff(chosen, doomed(&night{Kill: 4, Seed: 1}, due)); diff != "" {
		t.Errorf("same seed:\n%s", diff)
	}
	if cmp.Equal(chosen, doomed(&night{Kill: 4, Seed: 2}, due)) {
		t.Error("another seed dooms the same")
	}
	var resources []string
	for _, name := range chosen {
		resource, _, _ := strings.Cut(name, "/")
		resources = append(resources, resource)
	}
	if diff := cmp.Diff([]string{"charges", "transfers", "charges", "transfers"}, resources); diff != "" {
		t.Errorf("doomed (-want +got):\n%s", diff)
	}
	if got := len(doomed(&night{Kill: 1000, Seed: 1}, due)); got != 20 {
		t.Errorf("%d doomed of 20 requests", got)
	}
}

// TestNightOfADirectory: it is kept, refuses to change, keeps a second demo
// out, and is forgotten on demand without touching what is not ours.
func TestNightOfADirectory(t *testing.T) {
	dir := t.TempDir()
	first, doors, err := begin(&Options{Invoices: 7, Seed: 3}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := begin(&Options{}, dir); err == nil || !strings.Contains(err.Error(), "another semel demo") {
		t.Errorf("second demo: %v", err)
	}
	if _, _, err := begin(&Options{Fresh: true}, dir); err == nil {
		t.Error("a second demo cleared the directory of the first")
	}
	closeAll(doors)

	again, doors, err := begin(&Options{Invoices: 7}, dir)
	if err != nil {
		t.Fatal(err)
	}
	closeAll(doors)
	if diff := cmp.Diff(first, again, cmp.AllowUnexported(night{})); diff != "" {
		t.Errorf("taken up (-first +again):\n%s", diff)
	}
	_, _, err = begin(&Options{Invoices: 8, Lose: new(0.5)}, dir)
	want := fmt.Sprintf("the night in %s has --invoices 7, not 8 and --lose 0.2, not 0.5: start a new one with --fresh, or use another --dir", dir)
	if err == nil || err.Error() != want {
		t.Errorf("another night: %v, want %s", err, want)
	}

	theirs := filepath.Join(dir, "semel.db")
	for _, path := range []string{theirs, first.path(databaseFile), first.path(databaseFile + "-wal"), first.path(booksFile), first.path(booksFile + "-shm"), first.progress(0)} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh, doors, err := begin(&Options{Fresh: true}, dir)
	if err != nil {
		t.Fatal(err)
	}
	closeAll(doors)
	if fresh.ID == first.ID || fresh.Invoices != 300 {
		t.Errorf("a fresh night: %+v", fresh)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, nightFile), theirs}, left); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
}

func TestTakenAddressIsExplained(t *testing.T) {
	dir := t.TempDir()
	n, doors, err := begin(&Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	closeAll(doors)
	other, err := net.Listen("tcp", n.Semel)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, _, err := begin(&Options{}, dir); err == nil || !strings.Contains(err.Error(), n.Semel) || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("a taken address: %v", err)
	}
}

func TestTwoDemosBeginAtOnce(t *testing.T) {
	dir := t.TempDir()
	begun := make(chan error, 4)
	for range cap(begun) {
		go func() {
			_, doors, err := begin(&Options{}, dir)
			t.Cleanup(func() { closeAll(doors) })
			begun <- err
		}()
	}
	var refused int
	for range cap(begun) {
		if err := <-begun; err != nil && strings.Contains(err.Error(), "another semel demo") {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != cap(begun)-1 {
		t.Errorf("%d of %d were refused, want all but one", refused, cap(begun))
	}
}

func TestNightWithoutItsFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, semelLedger), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := begin(&Options{}, dir); err == nil || !strings.Contains(err.Error(), "nobody knows any more") {
		t.Errorf("a ledger without a night: %v", err)
	}
}

func TestDamagedNight(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, nightFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := begin(&Options{}, dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("damaged: %v", err)
	}
}

func TestMoney(t *testing.T) {
	for cents, want := range map[int64]string{0: "0.00", 5: "0.05", 123456: "1,234.56", 1296000: "12,960.00", 100000000: "1,000,000.00"} {
		if got := money(cents); got != want {
			t.Errorf("money(%d) = %s, want %s", cents, got, want)
		}
	}
}
