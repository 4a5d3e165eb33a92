package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"kith/bench"
	"kith/bench/private"
	"kith/bench/report"
	"kith/importer"
	"kith/storage"
	"kith/storage/sqlstore"
)

// makeStore makes a store that holds a graph, as `kith import` does, and returns how many
// edges there are. Everybody of the graph is a user, those without edges too.
func (r *run) makeStore(ctx context.Context, engine string, graph *bench.Graph) (location string, edges int, err error) {
	r.stores++
	name := fmt.Sprintf("kith_bench_%s_%d", r.token, r.stores)
	if engine == report.SQLite {
		location = "sqlite:" + r.path(name+".db")
	} else {
		if err := private.Execute(ctx, r.dsn(""), "CREATE DATABASE "+name); err != nil {
			return "", 0, fmt.Errorf("create the database %s: %w", name, err)
		}
		r.databases = append(r.databases, name)
		location = "mysql:" + r.dsn(name)
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: location})
	if err != nil {
		return "", 0, err
	}
	began := time.Now()
	edges, err = Fill(ctx, store, graph)
	if err := errors.Join(err, store.Close()); err != nil {
		return "", 0, fmt.Errorf("fill %s: %w", name, err)
	}
	if engine != report.SQLite { // InnoDB would look at them by itself some time later
		if err := private.Execute(ctx, r.dsn(name), "ANALYZE TABLE users, user_counts, following, follower"); err != nil {
			return "", 0, err
		}
	}
	r.Log("%s: %d users and %d follows loaded in %s", engine, graph.Users, edges, time.Since(began).Round(100*time.Millisecond))
	return location, edges, nil
}

// copyStore copies a SQLite store that nobody has opened since it was made.
func (r *run) copyStore(location string) (string, error) {
	path := strings.TrimPrefix(location, "sqlite:")
	if _, err := os.Stat(path + "-wal"); err == nil {
		return "", fmt.Errorf("copy %s: somebody has it open", path)
	}
	r.stores++
	to := r.path(fmt.Sprintf("kith_bench_%s_%d.db", r.token, r.stores))
	from, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("copy a store: %w", err)
	}
	defer from.Close()
	into, err := os.Create(to)
	if err != nil {
		return "", fmt.Errorf("copy a store: %w", err)
	}
	_, err = io.Copy(into, from)
	if err := errors.Join(err, into.Close()); err != nil {
		return "", fmt.Errorf("copy a store: %w", err)
	}
	return "sqlite:" + to, nil
}

// Fill makes all users of a graph in an empty store and imports the edges, which are generated
// meanwhile. It returns how many edges there are.
func Fill(ctx context.Context, store *sqlstore.Store, graph *bench.Graph) (edges int, err error) {
	const atOnce = 5000
	users := make([]storage.User, 0, atOnce)
	now := storage.MicrosOf(time.Now())
	for n := 1; n <= graph.Users; n++ {
		id := graph.ID(n)
		users = append(users, storage.User{ID: id, Handle: "u" + id.String(), Name: "u" + id.String(), CreatedAt: now, UpdatedAt: now})
		if len(users) < atOnce && n < graph.Users {
			continue
		}
		for _, made := range store.CreateUsers(ctx, users) {
			if made.Err != nil {
				return 0, made.Err
			}
		}
		users = users[:0]
	}
	edgeList, writer := io.Pipe()
	generated := make(chan error, 1)
	go func() {
		_, err := graph.WriteTo(writer)
		generated <- errors.Join(err, writer.Close())
	}()
	imported, err := importer.Run(ctx, store, importer.Config{Files: []string{"-"}, Stdin: edgeList})
	_ = edgeList.Close() // an import that failed has not read everything
	errGenerated := <-generated
	if err == nil {
		err = errGenerated
	}
	return int(imported.Edges), err
}
