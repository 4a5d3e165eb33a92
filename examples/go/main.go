package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/Khan/genqlient/graphql"
)

// main runs the client against Kith, and prints what it sees: go run . URL HANDLE PASSWORD ID-TO-FOLLOW. KITH_TOKEN is
// a token of an earlier visit. It ends with its input.
func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "arguments are missing: go run . URL HANDLE PASSWORD ID-TO-FOLLOW")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, handle, password, other string) error {
	session := &Session{token: os.Getenv("KITH_TOKEN"), SignIn: func(ctx context.Context) (string, error) {
		answer, err := Login(ctx, graphql.NewClient(url, http.DefaultClient), handle, password)
		if err != nil {
			return "", err
		}
		return answer.Login.Token, nil
	}}
	if session.token == "" {
		if _, err := session.Renew(ctx, ""); err != nil {
			return err
		}
	}
	kith := graphql.NewClient(url, &http.Client{Transport: session, Timeout: 30 * time.Second})

	list := func(what string) error {
		var handles []string
		for handle, err := range allFollowings(ctx, kith, handle) {
			if err != nil {
				return err
			}
			handles = append(handles, handle)
		}
		say(what, map[string]any{"handles": handles})
		return nil
	}
	if err := list("list"); err != nil {
		return err
	}
	followed, err := Follow(ctx, kith, other)
	if err != nil {
		return err
	}
	say("followed", map[string]any{"status": followed.Follow.Relationship.Status})
	if err := list("list"); err != nil {
		return err
	}
	_, err = Follow(ctx, kith, "0")
	say("refused", map[string]any{"code": code(err)})

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		err := session.watch(ctx, url, func() { say("connected", map[string]any{}) }, func(handle string) { say("follower", map[string]any{"handle": handle}) })
		if err != nil {
			time.Sleep(time.Second)
		}
	}
}

func say(what string, more map[string]any) {
	more["what"] = what
	text, err := json.Marshal(more)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
