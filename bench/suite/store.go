package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"kith/bench"
	"kith/bench/private"
	"kith/bench/report"
	"kith/files/importer"
	"kith/storage"
	"kith/storage/sqlstore"
)

// makeStore makes a store that holds a graph, as `kith import` does. All users of the graph are created, also those without edges.
func (r *run) makeStore(ctx context.Context, engine string, graph *bench.Graph) (location string, edges int, err error) {
	if location, err = r.emptyStore(ctx, engine); err != nil {
		return "", 0, err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: location})
	if err != nil {
		return "", 0, err
	}
	began := time.Now()
	edges, err = Fill(ctx, store, graph)
	if err := errors.Join(err, store.Close()); err != nil {
		return "", 0, fmt.Errorf("fill a store on %s: %w", engine, err)
	}
	r.Log("%s: %d users and %d follows loaded in %s", engine, graph.Users, edges, time.Since(began).Round(100*time.Millisecond))
	return location, edges, r.analyze(ctx, location)
}

// emptyStore makes a database for a new store. A file is made when it is opened.
func (r *run) emptyStore(ctx context.Context, engine string) (location string, err error) {
	name := r.nextName()
	if engine == report.SQLite {
		return "sqlite:" + r.path(name+".db"), nil
	}
	if err := private.Execute(ctx, r.dsn(""), "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("create the database %s: %w", name, err)
	}
	r.databases = append(r.databases, name)
	return "mysql:" + r.dsn(name), nil
}

func (r *run) nextName() string {
	r.stores++
	return fmt.Sprintf("kith_bench_%s_%d", r.token, r.stores)
}

// analyze lets MariaDB analyze its tables now; InnoDB would do so by itself some time later.
func (r *run) analyze(ctx context.Context, location string) error {
	dsn, mysql := strings.CutPrefix(location, "mysql:")
	if !mysql {
		return nil
	}
	return private.Execute(ctx, dsn, "ANALYZE TABLE users, handles, user_counts, following, follower, packed_chunk, post")
}

// copyStore copies a SQLite store that nobody has opened since it was made.
func (r *run) copyStore(location string) (string, error) {
	path, to := strings.TrimPrefix(location, "sqlite:"), r.path(r.nextName()+".db")
	if _, err := os.Stat(path + "-wal"); err == nil {
		return "", fmt.Errorf("copy %s: somebody has it open", path)
	}
	if err := copyFile(path, to); err != nil {
		return "", fmt.Errorf("copy a store: %w", err)
	}
	return "sqlite:" + to, nil
}

func copyFile(path, to string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	into, err := os.Create(to)
	if err == nil {
		_, err = into.ReadFrom(from)
		err = errors.Join(err, into.Close())
	}
	return err
}

// Fill makes all users of a graph in an empty store and imports the edges, which are generated
// meanwhile. It returns how many edges there are.
func Fill(ctx context.Context, store *sqlstore.Store, graph *bench.Graph) (edges int, err error) {
	if err := createUsers(ctx, store, graph, 1, graph.Users); err != nil {
		return 0, err
	}
	return importEdges(ctx, store, graph.Edges())
}

// createUsers creates users by their numbers.
func createUsers(ctx context.Context, store *sqlstore.Store, graph *bench.Graph, first, last int) error {
	const atOnce = 5000
	now := storage.MicrosOf(time.Now())
	for ; first <= last; first += atOnce {
		var users []storage.User
		for n := first; n <= min(last, first+atOnce-1); n++ {
			id := graph.ID(n)
			users = append(users, storage.User{ID: id, Handle: "u" + id.String(), Name: graph.Name(n), CreatedAt: now, UpdatedAt: now})
		}
		for _, made := range store.CreateUsers(ctx, users) {
			if made.Err != nil {
				return made.Err
			}
		}
	}
	return nil
}

func importEdges(ctx context.Context, store *sqlstore.Store, all iter.Seq[storage.Edge]) (edges int, err error) {
	edgeList, writer := io.Pipe()
	generated := make(chan error, 1)
	go func() {
		_, err := bench.WriteEdges(writer, all)
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
