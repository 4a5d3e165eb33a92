package cluster

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"

	"kith/storage/epoch"
	"kith/storage/events"
)

// Redis is the Redis beside the store; its zero value is none.
type Redis struct {
	client redis.UniversalClient
	runs   *epoch.Runs // sees each of its connections
}

// redisAnswers is how long Redis may take to answer at the start.
const redisAnswers = 2 * time.Second

// unheard replaces the library's logger: errors are returned.
type unheard struct{}

func (unheard) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(unheard{}) }

// OpenRedis connects to the Redis, and checks that it answers and is not a replica.
func (d Config) OpenRedis(ctx context.Context) (*Redis, error) {
	r, away, err := d.JoinRedis(ctx)
	if err == nil && away != nil {
		r.Close()
		return nil, away
	}
	return r, err
}

// NewRedis connects to a Redis when it is first asked.
func NewRedis(options *redis.UniversalOptions) *Redis {
	options.DialerRetries = 1            // each question is retried in any case; five dials a try would take 2 s
	options.ContextTimeoutEnabled = true // otherwise a hanging Redis is noticed late
	options.ConnMaxLifetime = lookAgain
	runs := new(epoch.Runs)
	options.OnConnect = runs.OnConnect
	return &Redis{redis.NewUniversalClient(options), runs}
}

// lookAgain is after how long it is found out where an address leads: a master that was demoted may go on answering. A connection costs a
// millisecond.
const lookAgain = 10 * time.Second

// JoinRedis is OpenRedis for a process that also works without its Redis: if that does not answer, away says why,
// and the connection is used as soon as it does. Wrong settings are errors all the same.
func (d Config) JoinRedis(ctx context.Context) (r *Redis, away, err error) {
	if d.Redis == "" {
		return &Redis{}, nil, nil
	}
	options, err := redisOptions(d.Redis)
	if err != nil {
		return nil, nil, err
	}
	named := strings.Join(options.Addrs, ",")
	asking, cancel := context.WithTimeout(ctx, redisAnswers)
	defer cancel()
	err = findCluster(asking, options)
	r = NewRedis(options)
	if err == nil {
		err = r.Ready(asking)
	}
	if err == nil || errors.Is(err, errRefuses) && !redis.IsReadOnlyError(err) {
		return r, nil, nil // Telling tells why it refuses
	}
	passes := mayPass(err)
	if late := net.Error(nil); (asking.Err() != nil || errors.As(err, &late) && late.Timeout()) && ctx.Err() == nil { // the connection's deadline may come first
		err = fmt.Errorf("no answer within %s", redisAnswers)
	}
	err = fmt.Errorf("%s: %w", named, err)
	if !passes {
		r.Close()
		return nil, nil, err
	}
	return r, err, nil
}

// mayPass reports whether an error comes from a Redis that is not there or not ready yet. Any other answer of Redis
// means wrong settings.
func mayPass(err error) bool {
	return !errors.As(err, new(redis.Error)) || redis.IsLoadingError(err) || redis.IsClusterDownError(err) ||
		redis.IsMasterDownError(err) || redis.IsTryAgainError(err) || redis.IsMaxClientsError(err)
}

// findCluster makes options those of a cluster if the only server they name is part of one. The masters are added because the named one
// may be a replica, which [epoch.Runs] does not let us ask, or a name that leads to another server each time.
func findCluster(ctx context.Context, options *redis.UniversalOptions) error {
	if len(options.Addrs) > 1 {
		return nil
	}
	one := *options
	one.DialerRetries, one.ContextTimeoutEnabled = 1, true // as in NewRedis
	client := redis.NewClient(one.Simple())
	defer client.Close()
	slots, err := client.ClusterSlots(ctx).Result() //nolint:staticcheck // Redis 6.2 has no CLUSTER SHARDS
	for _, s := range slots {
		options.IsClusterMode = true
		if master := s.Nodes[0].Addr; !strings.HasPrefix(master, ":") { // otherwise it does not know its own address
			options.Addrs = append(options.Addrs, master)
		}
	}
	if errors.As(err, new(redis.Error)) { // there is no cluster, or Ready is told the same
		return nil
	}
	return err
}

var errRefuses = errors.New("it refuses what gateways do")

// Ready returns an error if a Redis does not answer, or refuses what gateways do: a replica, a full one, a node of a cluster, or by its
// rights. Then follows may be answered but never propagated, and caches do not forget old values.
func (r *Redis) Ready(ctx context.Context) error {
	if err := r.client.Ping(ctx).Err(); err != nil && !strings.HasPrefix(err.Error(), "MISCONF ") { // of which the others speak, too
		return err
	}
	if _, one := r.client.(*redis.Client); one {
		info, _ := r.client.ClusterInfo(ctx).Result() // refused where there is no cluster
		if n, _ := strconv.Atoi(epoch.Field(info, "cluster_size")); n > 1 {
			return fmt.Errorf("%w: it is one of the %d masters of a cluster, which was not found at the start: start this again", errRefuses, n)
		}
	}
	const key, script = "kith:start", `return 1`
	pipe := r.client.Pipeline()
	set := pipe.Set(ctx, key, "", time.Second)
	pipe.ScriptLoad(ctx, script)
	pipe.Eval(ctx, script, []string{key})
	pipe.Publish(ctx, eventsChannel+"start", "") // nobody subscribes to it
	_, err := pipe.Exec(ctx)
	switch {
	case redis.IsReadOnlyError(err):
		err = fmt.Errorf("it is a replica, which cannot be written: %w", err)
	case redis.HasErrorPrefix(set.Err(), "unknown command"):
		return fmt.Errorf("it is a Sentinel: name the master, or a proxy that leads to it: %w", err)
	}
	if errors.As(err, new(redis.Error)) {
		err = fmt.Errorf("%w: %w", errRefuses, err)
	}
	return err
}

// Telling returns what logs each change of what Redis refuses.
func (r *Redis) Telling(logger *slog.Logger) func(context.Context) {
	told := ""
	return func(ctx context.Context) {
		if r.client == nil {
			return
		}
		asking, cancel := context.WithTimeout(ctx, redisAnswers/2)
		defer cancel()
		switch err := r.Ready(asking); {
		case errors.Is(err, errRefuses) && err.Error() != told:
			told = err.Error()
			logger.WarnContext(ctx, "Redis is of no use", "error", err)
		case err == nil && told != "":
			told = ""
			logger.InfoContext(ctx, "Redis is of use again")
		}
	}
}

// redisID is the key of the id.
const redisID = "kith:id"

// id tells a Redis from others, by whatever address it is reached. The first process that asks writes it.
func (r *Redis) id(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, redisAnswers/2) // at the start that has been waited for already
	defer cancel()
	_ = r.client.SetNX(ctx, redisID, rand.Text(), 0).Err() // a full one has the id already
	return r.client.Get(ctx, redisID).Result()
}

// CheckRedis returns an error if a location of a Redis cannot be valid.
func CheckRedis(location string) error {
	_, err := redisOptions(location)
	return err
}

// redisURL has three parts: what stands before the addresses, these, and the rest.
var redisURL = regexp.MustCompile(`^(.*?://(?:[^/?#]*@)?)([^/?#]*)(.*)$`)

// redisOptions reads host:port,host:port, or a URL that may have several such addresses as well. No error shows a part of the setting,
// because that may be of a password.
func redisOptions(setting string) (*redis.UniversalOptions, error) {
	before, hosts, after := "redis://", setting, ""
	parts := redisURL.FindStringSubmatch(strings.TrimSpace(setting)) // a Secret of Kubernetes may end with a newline
	if parts != nil {
		before, hosts, after = parts[1], parts[2], parts[3]
	}
	addrs := strings.FieldsFunc(hosts, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })
	if len(addrs) == 0 && parts != nil {
		addrs = []string{""} // this machine, or a socket
	}
	if len(addrs) == 0 {
		return nil, errors.New("it names no host:port")
	}
	frame, err := url.Parse(before + after)
	if err != nil || frame.Fragment != "" {
		return nil, errRedisURL
	}
	for option := range frame.Query() {
		if option != "db" && option != "skip_verify" {
			return nil, errors.New("it has other options than db and skip_verify, or a password in which ? is not written as %3F")
		}
	}
	all := new(redis.UniversalOptions)
	for i, a := range addrs {
		host, port, err := net.SplitHostPort(a)
		if _, noNumber := strconv.ParseUint(port, 10, 16); parts == nil && (err != nil || host == "" || noNumber != nil) {
			return nil, fmt.Errorf("address %d of %d is not host:port; with a password it is redis://user:password@host:port/0", i+1, len(addrs))
		}
		o, err := redis.ParseURL(before + a + after)
		if err != nil {
			return nil, errRedisURL
		}
		if i == 0 {
			all.Username, all.Password, all.DB, all.TLSConfig = o.Username, o.Password, o.DB, o.TLSConfig
		}
		all.Addrs = append(all.Addrs, o.Addr)
	}
	if all.DB != 0 && len(addrs) > 1 {
		return nil, errors.New("a cluster has no database but 0")
	}
	if all.TLSConfig != nil {
		all.Dialer = dialTLS(all.TLSConfig)
	}
	return all, nil
}

// dialTLS connects to the nodes of a cluster, each of which may have a certificate of its own. A node that is known by an IP address alone, as
// others tell it, may have the certificate of the name that is set.
func dialTLS(settings *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	isName := func(host string) bool { return net.ParseIP(host) == nil }
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		own := settings.Clone()
		if host, _, err := net.SplitHostPort(addr); err == nil && (isName(host) || !isName(own.ServerName)) {
			own.ServerName = host
		}
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: redisAnswers}, Config: own}
		return d.DialContext(ctx, network, addr)
	}
}

var errRedisURL = errors.New("it is not a URL such as redis://user:password@host:6379/0, in which # of a password is written as %23, / as %2F, and % as %25")

// Client is the connection; nil if there is none.
func (r *Redis) Client() redis.UniversalClient { return r.client }

// eventsChannel begins the channels through which gateways hear of changes.
const eventsChannel = "kith:events:"

// EventsOf makes the bus between the gateways of one store, which may share a Redis with other
// stores.
func EventsOf(store Store, redis *Redis, hub *events.Hub, metrics *events.Metrics) *events.Bus {
	return events.NewBus(hub, events.BusConfig{Redis: redis.Client(), Channel: eventsChannel + store.UUID(), Metrics: metrics})
}

// counting is how long a write may wait for a counter.
const counting = 100 * time.Millisecond

// counted is for how long writes are counted together.
const counted = time.Minute

// count adds to a counter, which lasts for a while from its first addition, and returns its value and how many ms it has left.
var count = redis.NewScript(`
local value = redis.call('INCRBY', KEYS[1], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 or left > tonumber(ARGV[2]) then -- its clock was set back
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
	left = tonumber(ARGV[2])
end
return {value, left}`)

// CountAll adds to counters of a store, which all its gateways share, and returns their values and for how long these last: a counter
// begins anew a minute after it began, by the clock of Redis. Nil if there is no Redis.
func (r *Redis) CountAll(store Store) func(ctx context.Context, counter string, n int) (int, time.Duration, error) {
	if r.client == nil {
		return nil
	}
	prefix := "kith:" + store.UUID() + ":"
	return func(ctx context.Context, counter string, n int) (int, time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, counting)
		defer cancel()
		got, err := count.Run(ctx, r.client, []string{prefix + counter}, n, counted.Milliseconds()).Int64Slice()
		if err != nil {
			return 0, 0, err
		}
		return int(got[0]), time.Duration(got[1]) * time.Millisecond, nil
	}
}

// Close releases the connections.
func (r *Redis) Close() error {
	if r.client == nil {
		return nil
	}
	return r.client.Close()
}
