# Reads `go test -v` of many packages and prints what plain `go test` prints:
# one line for each package, and before it all output of a package that failed.
# Then it compares the conformance tests that the two stores ran, subtests
# included, and fails unless they are the same ones with the same results.

/^ *--- (PASS|FAIL|SKIP): TestConformance/ { ran[++n] = $2 " " $3 }

{ output[++lines] = $0 }

/^(ok|FAIL|\?) *\t/ {
	store = ""
	if ($2 ~ /\/store\/sqlite$/) store = "sqlite"
	if ($2 ~ /\/store\/postgres$/) store = "postgres"
	if ($1 == "FAIL") {
		for (i = 1; i < lines; i++) print output[i]
	}
	print
	if (store != "") {
		stores++
		count[store] = n
		for (i = 1; i <= n; i++) seen[ran[i]] = seen[ran[i]] store
	}
	n = lines = 0
}

END {
	for (i = 1; i <= lines; i++) print output[i]
	if (!stores) exit 0
	printf "conformance: %d tests on sqlite, %d on postgres\n", count["sqlite"], count["postgres"]
	for (test in seen) {
		if (seen[test] == "sqlite" || seen[test] == "postgres") {
			print "conformance: only on " seen[test] ": " test
			differ = 1
		}
	}
	if (differ || !count["sqlite"] || count["sqlite"] != count["postgres"]) {
		print "FAIL\tconformance: the stores did not run the same tests"
		exit 1
	}
}
