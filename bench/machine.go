package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc.
const tick = 10 * time.Millisecond

// quiet is how many cores others may use while nothing is measured, and
// disturbed how many make a run count only where there is no better one.
const (
	quiet     = 0.25
	disturbed = 0.35
)

// machineCPU is the CPU time that the whole machine has used, stolen time
// included.
func machineCPU() time.Duration {
	f := strings.Fields(firstLine("/proc/stat"))
	var sum int64
	for i := 1; i <= 8 && i < len(f); i++ {
		if i != 4 && i != 5 { // idle, waiting for a disk
			sum += number(f[i])
		}
	}
	return time.Duration(sum) * tick
}

// processCPU is the CPU time of a process, its living and its dead children.
func processCPU(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	var sum int64
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, stat := range stats {
		_, rest, ok := strings.Cut(firstLine(stat), ") ")
		f := strings.Fields(rest)
		if !ok || len(f) < 15 {
			continue // it has just ended
		}
		switch {
		case filepath.Base(filepath.Dir(stat)) == strconv.Itoa(pid):
			sum += number(f[11]) + number(f[12]) + number(f[13]) + number(f[14])
		case f[1] == strconv.Itoa(pid):
			sum += number(f[11]) + number(f[12])
		}
	}
	return time.Duration(sum) * tick
}

// written is how many bytes a process has written to files.
func written(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)) // 0 where it cannot be read
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "wchar: "); ok {
			return number(strings.TrimSpace(v))
		}
	}
	return 0
}

// awaitQuiet waits until others use little of the machine, at most for d.
func awaitQuiet(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		before, start := machineCPU(), time.Now()
		time.Sleep(time.Second)
		if (machineCPU()-before).Seconds()/time.Since(start).Seconds() < quiet {
			return
		}
	}
}

// device is the block device that holds a directory.
type device struct {
	name       string // empty if unknown
	fileSystem string
	cached     bool // it has a volatile cache, so that durable means flushed
}

func deviceOf(dir string) device {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return device{}
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return device{}
	}
	var found device
	longest := -1
	for line := range strings.Lines(string(text)) {
		// 36 35 98:0 /root /mount options - ext4 /dev/vda options
		left, right, _ := strings.Cut(line, " - ")
		f, r := strings.Fields(left), strings.Fields(right)
		if len(f) < 5 || len(r) < 2 {
			continue
		}
		mount := f[4]
		if len(mount) < longest || dir != mount && mount != "/" && !strings.HasPrefix(dir, mount+"/") {
			continue
		}
		longest = len(mount)
		found = device{fileSystem: r[0]}
		if link, err := filepath.EvalSymlinks("/sys/dev/block/" + f[2]); err == nil {
			found.name = filepath.Base(link)
			cache := firstLine(filepath.Join(link, "queue/write_cache"))
			if cache == "" {
				cache = firstLine(filepath.Join(filepath.Dir(link), "queue/write_cache")) // of a partition's disk
			}
			found.cached = cache == "write back"
		}
	}
	return found
}

// flushes is how often the device was told to empty its cache.
func (d device) flushes() int64 {
	text, _ := os.ReadFile("/proc/diskstats") // 0 where it cannot be read
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 19 && f[2] == d.name {
			return number(f[18])
		}
	}
	return 0
}

// volatile says why nothing written to the device can be durable, or "".
func (d device) volatile() string {
	switch d.fileSystem {
	case "tmpfs", "ramfs":
		return "the data is on " + d.fileSystem + ", which says nothing about a disk: set TMPDIR to a directory on one"
	}
	return ""
}

// machineFacts describe where figures come from.
func machineFacts() string {
	model := "unknown"
	text, _ := os.ReadFile("/proc/cpuinfo") // unknown where it cannot be read
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	memory := strings.Join(strings.Fields(firstLine("/proc/meminfo")), " ")
	return fmt.Sprintf("# %s, commit %s\n# %d x %s, %s, Linux %s, load %s\n# %s\n",
		time.Now().UTC().Format(time.RFC3339), commit(), runtime.NumCPU(), model, memory,
		firstLine("/proc/sys/kernel/osrelease"), firstLine("/proc/loadavg"), runtime.Version())
}

// commit is the commit that is measured, marked where files differ from it.
func commit() string {
	id, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	if exec.Command("git", "diff", "--quiet", "HEAD").Run() != nil {
		return string(bytes.TrimSpace(id)) + " with changes"
	}
	return string(bytes.TrimSpace(id))
}

func firstLine(path string) string {
	text, _ := os.ReadFile(path) // empty where it cannot be read
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // the kernel writes numbers
	return n
}
