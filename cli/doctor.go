package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/cluster"
	"kith/gateway/traces"
	"kith/graph/declared"
	"kith/replication/binlog"
	"kith/storage/doctor"
	"kith/storage/feed/inbox"
	"kith/storage/sqlstore"
)

// DoctorCmd is `kith doctor`. It takes the settings of `kith serve`, so that what is checked is what would run.
type DoctorCmd struct {
	Output
	Quiet bool `help:"Report only warnings and failures."`
	ServeCmd
}

// doctorReport is the report for programs.
type doctorReport struct {
	Version  string      `json:"version"`
	Warnings int         `json:"warnings"`
	Failures int         `json:"failures"`
	Checks   doctor.List `json:"checks"`
}

// Run examines everything, changes nothing, and reports. If something does not work, it then
// returns an error.
func (c *DoctorCmd) Run(ctx context.Context, settings *Settings, k *kong.Context) error {
	var all doctor.List
	shards := strings.Count(settings.Store, ";") + 1
	if c.examineSettings(ctx, settings, k, &all) {
		var shared doctor.List
		found, addresses := sqlstore.Examine(ctx, sqlstore.Config{Location: settings.Store, StatementTimeout: settings.StatementTimeout, MaxConns: settings.ShardConns}, map[string]func([]byte){
			cluster.SettingsCheckpoint: func(value []byte) { settings.examineShared(value, &shared) },
			cluster.RedisCheckpoint: func(recorded []byte) {
				redis, _, err := settings.cluster().JoinRedis(ctx)
				if err != nil {
					return // this is told below
				}
				defer redis.Close()
				if err := cluster.OtherRedis(redis.Name(ctx), string(recorded)); err != nil {
					shared.Warn("settings", "", err.Error(), "correct the setting; if nothing runs on the store, the next start counts")
				}
			},
		})
		all = append(append(all, found...), shared...)
		shards = max(shards, len(addresses)) // with those that were added
		mode := settings.Redundancy
		if strings.HasPrefix(settings.Store, "mysql:") && (mode == cluster.Binlog || mode == auto && len(addresses) > 1) {
			all = append(all, binlog.Examine(ctx, addresses, mode != auto)...)
		}
		all = append(all, settings.cluster().ExamineRedis(ctx, settings.Feed != inbox.Pull)...)
	}
	c.examineProcess(settings, shards, &all)
	report := doctorReport{ThisBuild().Version, all.Count(doctor.Warn), all.Count(doctor.Fail), all}
	if c.Quiet {
		report.Checks = slices.DeleteFunc(report.Checks, func(f doctor.Finding) bool { return f.Level == doctor.OK })
	}
	if err := c.report(k.Stdout, report); err != nil {
		return err
	}
	if report.Failures > 0 {
		return fmt.Errorf("doctor: checks that failed: %d", report.Failures)
	}
	return nil
}

func (c *DoctorCmd) report(out io.Writer, r doctorReport) error {
	if c.JSON() {
		return WriteJSON(out, r)
	}
	for _, f := range r.Checks {
		subject := f.Check
		if f.Of != "" {
			subject += ", " + f.Of
		}
		fmt.Fprintf(out, "%-4s  %s: %s\n", f.Level, printable(subject), printable(f.Says))
		if f.Mend != "" {
			fmt.Fprintf(out, "      → %s\n", printable(f.Mend))
		}
	}
	if c.Quiet {
		return nil
	}
	_, err := fmt.Fprintf(out, "checks: %d, warnings: %d, failures: %d\n", len(r.Checks), r.Warnings, r.Failures)
	return err
}

// examineSettings checks the settings as a start does, and says whether servers can be asked.
func (c *DoctorCmd) examineSettings(ctx context.Context, settings *Settings, k *kong.Context, all *doctor.List) (usable bool) {
	wrong := func(err error) {
		if err != nil {
			all.Fail("settings", "", err.Error(), "correct the setting: kith serve --help-all shows all")
		}
	}
	outOfBounds(k, func(flag string, err error) { wrong(Misset(flag, err)) })
	err := settings.Check()
	wrong(err)
	usable = err == nil && settings.StatementTimeout > 0 && settings.ShardConns > 0
	misset := c.check()
	_, unread := c.trustedDocuments()
	_, mistraced := traces.Read(os.Getenv)
	for _, err := range []error{misset, mistraced, c.Settings.Check(), unread} {
		wrong(err)
	}
	if len(*all) > 0 {
		return usable
	}
	all.OK("settings", "", "they are valid")
	if settings.StatementTimeout >= c.RequestTimeout {
		all.Warn("settings", "", fmt.Sprintf("--statement-timeout (%s) is not shorter than --request-timeout (%s): one slow shard can use up a request's time", settings.StatementTimeout, c.RequestTimeout), "lower --statement-timeout")
	}
	c.examineIdentity(ctx, settings, all)
	return usable
}

// examineShared compares what the process is told with what is set in the store, which holds from then on.
func (s *Settings) examineShared(value []byte, all *doctor.List) {
	var set map[string]string
	err := json.Unmarshal(value, &set)
	has, unread := valuesOf(set, nil)
	if err = cmp.Or(err, unread); err != nil {
		all.Fail("settings", "", fmt.Sprintf("the settings in the store cannot be read: %v", err), "")
		return
	}
	for _, name := range differing(s.told, has) {
		says := toldOtherwise(name, s.told[name], has[name]).Error()
		if _, isSet := set[name]; isSet {
			all.Fail("settings", "", says, "or leave the setting out: processes take it from the store")
			continue
		}
		all.Warn("settings", "", says, "or stop what runs on the store: a start while nothing else runs records the setting")
		set[name] = s.told[name]
	}
	of, err := readStoreSettings(set)
	if err != nil {
		all.Fail("settings", "", err.Error(), "correct the setting")
		return
	}
	s.StoreSettings = *of
	if name, err := of.check(s.Store, s.Redis); err != nil {
		all.Fail("settings", "", Misset(name, err).Error(), "correct the setting, or kith settings set "+name+"=…")
	}
}

// examineIdentity reads the keys by which tokens are verified.
func (c *DoctorCmd) examineIdentity(ctx context.Context, settings *Settings, all *doctor.List) {
	who, err := c.Settings.Open(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		all.Fail("secrets", "", err.Error(), "correct the setting, or make its source reachable")
		return
	}
	defer who.Close()
	switch {
	case who.MadeSecret:
		all.Warn("secrets", "", "no secret or identity provider is set: tokens are valid only on this gateway, until it exits", "set KITH_JWT_SECRET to the output of `openssl rand -hex 32`, the same for all gateways")
	case c.JWTSecret != "":
		all.OK("secrets", "", "the secret of tokens has %d bytes", len(c.JWTSecret))
	default:
		all.OK("secrets", "", "keys of tokens are read")
	}
	open := func(name, what string) {
		if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o007 != 0 {
			all.Warn("secrets", "", "every user of this machine can read "+what, "chmod o= "+name)
		}
	}
	open(c.JWTSecretFile, "the file of the secrets")
	if hasSecrets(settings.Config) {
		open(settings.Config, "the file of the settings, which holds a secret or password")
	}
	if who.Issuer != nil {
		all.OK("scopes", "tokens signed with the secret", "may have act-as and admin: whoever has the secret can act as anybody")
	}
	for _, p := range who.Providers {
		of, scopes := "tokens of "+p.Issuer, "may have "+cmp.Or(strings.Join(p.Scopes, " and "), "none")
		switch names := "it names users by their ids: it acts as any user, without a scope"; {
		case p.Mapped():
			all.OK("scopes", of, "%s", scopes)
		case len(who.Providers) > 1:
			all.Warn("scopes", of, scopes+"; "+names, `write "subjects": "mapped", unless it is your own provider`)
		default:
			all.OK("scopes", of, "%s; %s", scopes, names)
		}
	}
}

// hasSecrets reports whether a file of settings, if there is one, holds the secret of tokens, or a user of a server, whose password is beside it.
func hasSecrets(config string) bool {
	var values map[string]any
	text, err := declared.ReadFile(config)
	if err != nil || declared.Decode(text, &values) != nil {
		return false
	}
	return values["jwt-secret"] != nil || strings.Contains(fmt.Sprint(values["store"], values["redis"]), "@")
}

// examineProcess looks at what the machine has, and the operating system allows.
func (c *DoctorCmd) examineProcess(settings *Settings, shards int, all *doctor.List) {
	if m := c.footprint(settings); m.isTooMuch() {
		all.Warn("caches", "", fmt.Sprintf("--cache-bytes is %s, and there are %s in all", humanize.IBytes(m.caches), humanize.IBytes(m.machine)), "lower --cache-bytes")
	}
	limit, err := openFiles()
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err != nil {
		all.Warn("open files", "", err.Error(), "")
		return
	}
	needs := uint64(c.MaxConnections) + ownFiles(settings, shards)
	says := fmt.Sprintf("the limit is %d; --max-connections and the shards need up to %d", limit, needs)
	if limit < needs {
		all.Warn("open files", "", says, fmt.Sprintf("ulimit -Hn %d, LimitNOFILE=%[1]d for systemd, or lower --max-connections", needs))
		return
	}
	all.OK("open files", "", "%s", says)
}
