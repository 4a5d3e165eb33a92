package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"kith/bench/report"
	"kith/bench/suite"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// quick are flags of a run that only has to finish.
var quick = []string{"--engines", "sqlite", "--connections", "2", "--rounds", "1", "--duration", "60ms", "--heat", "50ms"}

// `kith bench` measures the program, and prints tables or JSON.
func TestBenchAll(t *testing.T) {
	stores := t.TempDir()
	out, err := benchCommand(t, append(quick, "--users", "300", "--mixed-users", "300", "--questions", "q1,mixed", "--folder", stores, "--output", "json")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if left, err := os.ReadDir(stores); err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
	var r report.Report
	must.OK(t, json.Unmarshal([]byte(out), &r))
	if len(r.Sizes) != 1 || len(r.Sizes[0].Cells) != 6 || !strings.HasPrefix(r.Command, "kith bench --engines sqlite ") {
		t.Errorf("%+v", r)
	}
	out, err = benchCommand(t, append(quick, "--users", "300", "--questions", "q1", "--states", "cold")...)
	if err != nil || !strings.Contains(out, "### SQLite") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestBenchAllFails(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"--users", "10"}, "--users"},
		{[]string{"--rounds", "0"}, "--rounds"},
		{[]string{"--questions", "q7"}, `"q7" is none of q1, `},
		{[]string{"--engines", "oracle"}, "--engines"},
		{[]string{"--mariadb", "no dsn", "--engines", "mariadb"}, "DSN"},
		{[]string{"several", "--users", "10"}, "--users"},
		{[]string{"several", "--gateways", "0"}, "--gateways"},
		{[]string{"several", "--gateways", "17"}, "--gateways"},
		{[]string{"several", "--engines", "sqlite"}, "--engines"},
		{[]string{"guard", kithtest.Binary(t), "--users", "10"}, "--users"},
		{[]string{"guard", "/none", "--users", "300"}, "/none"},
		{[]string{"app", "--users", "10"}, "--users"},
		{[]string{"app", "--operations", "Profile"}, "--operations"},
		{[]string{"app", "--engines", "mariadb", "--mariadb", "no dsn"}, "DSN"},
	} {
		_, err := benchCommand(t, c.arguments...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.arguments, err, c.want)
		}
	}
}

// `kith bench guard` compares two builds, here the same one twice, and fails if one question is slower than allowed.
func TestBenchGuard(t *testing.T) {
	arguments := append([]string{"guard", kithtest.Binary(t), "--users", "300", "--questions", "q1,mixed"}, quick...)
	out, err := benchCommand(t, append(arguments, "--least", "0.01", "--output", "json")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var compared []suite.Compared
	if err := json.Unmarshal([]byte(out), &compared); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, question := range []string{"q1", "mixed"} {
		if len(compared) != 2 || compared[i].Question != question || compared[i].State != report.Warm || compared[i].Rate <= 0 || compared[i].Before <= 0 {
			t.Fatalf("%+v", compared)
		}
	}
	out, err = benchCommand(t, append(arguments, "--least", "1000")...)
	if err == nil || strings.Count(err.Error(), "at least 1000 is allowed") != 2 || !strings.Contains(out, "CPU of a request") {
		t.Errorf("%v\n%s", err, out)
	}
}

// `kith bench app` puts what the web app asks to the baseline and to the program.
func TestBenchApp(t *testing.T) {
	arguments := append([]string{"app", "--users", "300", "--operations", "app,AppProfile"}, quick...)
	out, err := benchCommand(t, append(arguments, "--output", "json")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var rates []suite.AppRates
	if err := json.Unmarshal([]byte(out), &rates); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, operation := range []string{"app", "AppProfile"} {
		if len(rates) != 2 || rates[i].Operation != operation || rates[i].State != report.Warm || rates[i].Ratio <= 0 || rates[i].Kith.Statements == nil {
			t.Fatalf("%+v", rates)
		}
	}
	out, err = benchCommand(t, arguments...)
	if lines := strings.Split(out, "\n"); err != nil || len(lines) != 4 || !strings.Contains(lines[0], "SQL statements") || !strings.Contains(lines[2], "AppProfile") ||
		strings.Contains(out, "?") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Settings that may contain a password are not kept.
func TestCommandIsKeptWithoutPasswords(t *testing.T) {
	dsn := "root:secret@tcp(127.0.0.1:1)/"
	_, err := benchCommand(t, "--engines", "mariadb", "--mariadb", dsn)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}
