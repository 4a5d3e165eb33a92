package apierr

import "fmt"

// A Reason says what exactly was refused, and why, in `extensions.reason`. Each has one code.
type Reason string

// The reasons of the code BAD_USER_INPUT. The schema's enum ErrorReason describes all of them.
const (
	MalformedRequest  Reason = "MALFORMED_REQUEST"
	InvalidQuery      Reason = "INVALID_QUERY"
	InvalidValue      Reason = "INVALID_VALUE"
	OutOfRange        Reason = "OUT_OF_RANGE"
	TooLong           Reason = "TOO_LONG"
	IDMalformed       Reason = "ID_MALFORMED"
	CursorMalformed   Reason = "CURSOR_MALFORMED"
	CursorForeign     Reason = "CURSOR_FOREIGN"
	TokenMalformed    Reason = "CONSISTENCY_TOKEN_MALFORMED"
	HandleMalformed   Reason = "HANDLE_MALFORMED"
	HandleReserved    Reason = "HANDLE_RESERVED"
	HandleTaken       Reason = "HANDLE_TAKEN"
	PasswordTooShort  Reason = "PASSWORD_TOO_SHORT"
	PasswordTooLong   Reason = "PASSWORD_TOO_LONG"
	PasswordMalformed Reason = "PASSWORD_MALFORMED"
	PasswordUnwanted  Reason = "PASSWORD_UNWANTED"
	TextLength        Reason = "TEXT_LENGTH"
	TextInvisible     Reason = "TEXT_INVISIBLE"
	URLMalformed      Reason = "URL_MALFORMED"
	Self              Reason = "SELF"
	IdentityMalformed Reason = "IDENTITY_MALFORMED"
	IdentityTaken     Reason = "IDENTITY_TAKEN"
	PostDeleted       Reason = "POST_DELETED"
)

// The reasons of the other codes.
const (
	UserNotFound    Reason = "USER_NOT_FOUND"
	PostNotFound    Reason = "POST_NOT_FOUND"
	ListNotFound    Reason = "LIST_NOT_FOUND"
	RequestNotFound Reason = "REQUEST_NOT_FOUND"
	NotFollowing    Reason = "NOT_FOLLOWING"

	NotSignedIn      Reason = "NOT_SIGNED_IN"
	CredentialsWrong Reason = "CREDENTIALS_WRONG"
	TokenInvalid     Reason = "TOKEN_INVALID"
	TokenExpired     Reason = "TOKEN_EXPIRED"
	TokenRevoked     Reason = "TOKEN_REVOKED"
	NotRegistered    Reason = "NOT_REGISTERED"

	ScopeMissing     Reason = "SCOPE_MISSING"
	OriginForeign    Reason = "ORIGIN_FOREIGN"
	SchemaHidden     Reason = "SCHEMA_HIDDEN"
	DocumentsOnly    Reason = "DOCUMENTS_ONLY"
	Blocking         Reason = "BLOCKING"
	Blocked          Reason = "BLOCKED"
	RequestDeclined  Reason = "FRIEND_REQUEST_DECLINED"
	NotPossible      Reason = "NOT_POSSIBLE"
	NotYours         Reason = "NOT_YOURS"
	Deactivated      Reason = "DEACTIVATED"
	Suspended        Reason = "SUSPENDED"
	BeingDeleted     Reason = "BEING_DELETED"
	PasswordWrong    Reason = "PASSWORD_WRONG"
	OnlyIdentity     Reason = "ONLY_IDENTITY"
	ProviderDecides  Reason = "PROVIDER_DECIDES"
	TokenNotRenewed  Reason = "TOKEN_NOT_RENEWED"
	SessionOver      Reason = "SESSION_OVER"
	DocumentNotFound Reason = "DOCUMENT_NOT_FOUND"

	TooManyFollows    Reason = "TOO_MANY_FOLLOWS"
	TooManyTheirs     Reason = "TOO_MANY_FOLLOWS_OF_OTHER"
	TooManyBlocks     Reason = "TOO_MANY_BLOCKS"
	TooManySpecials   Reason = "TOO_MANY_SPECIALS"
	TooManyRelations  Reason = "TOO_MANY_RELATIONS"
	TooManyLists      Reason = "TOO_MANY_LISTS"
	TooManyRequests   Reason = "TOO_MANY_FRIEND_REQUESTS"
	TooManyIdentities Reason = "TOO_MANY_IDENTITIES"
	TooManyImports    Reason = "TOO_MANY_IMPORTS"

	TooManyWrites        Reason = "TOO_MANY_WRITES"
	TooManySignIns       Reason = "TOO_MANY_SIGN_INS"
	TooManyConnections   Reason = "TOO_MANY_CONNECTIONS"
	TooManyOperations    Reason = "TOO_MANY_OPERATIONS"
	TooManySubscriptions Reason = "TOO_MANY_SUBSCRIPTIONS"

	CostTooHigh       Reason = "COST_TOO_HIGH"
	QueryTooLarge     Reason = "QUERY_TOO_LARGE"
	VariablesTooLarge Reason = "VARIABLES_TOO_LARGE"
	AnswerTooLarge    Reason = "ANSWER_TOO_LARGE"
	ListTooLong       Reason = "LIST_TOO_LONG"

	TimeOver      Reason = "TIME_OVER"
	Cancelled     Reason = "CANCELLED"
	Unreachable   Reason = "UNREACHABLE"
	Overloaded    Reason = "OVERLOADED"
	FellBehind    Reason = "FELL_BEHIND"
	ChangedAtOnce Reason = "CHANGED_AT_ONCE"
	StoreCopied   Reason = "STORE_COPIED"
	ServerAtFault Reason = "SERVER_AT_FAULT"

	SnapshotNeeded Reason = "SNAPSHOT_NEEDED"
)

// codes has the reasons of all codes but BAD_USER_INPUT.
var codes = byReason(map[Code][]Reason{
	CodeNotFound:        {UserNotFound, PostNotFound, ListNotFound, RequestNotFound, NotFollowing},
	CodeUnauthenticated: {NotSignedIn, CredentialsWrong, TokenInvalid, TokenExpired, TokenRevoked},
	CodeNotRegistered:   {NotRegistered},
	CodeForbidden: {
		ScopeMissing, OriginForeign, SchemaHidden, DocumentsOnly, Blocking, Blocked, RequestDeclined, NotPossible, NotYours, Deactivated, Suspended,
		BeingDeleted, PasswordWrong, OnlyIdentity, ProviderDecides, TokenNotRenewed, SessionOver,
	},
	CodePersistedNotFound: {DocumentNotFound},
	CodeLimitReached:      {TooManyFollows, TooManyTheirs, TooManyBlocks, TooManySpecials, TooManyRelations, TooManyLists, TooManyRequests, TooManyIdentities, TooManyImports},
	CodeRateLimited:       {TooManyWrites, TooManySignIns, TooManyConnections, TooManyOperations, TooManySubscriptions},
	CodeTooCostly:         {CostTooHigh, QueryTooLarge, VariablesTooLarge, AnswerTooLarge, ListTooLong},
	CodeTimeout:           {TimeOver, Cancelled},
	CodeUnavailable:       {Unreachable, Overloaded, FellBehind, ChangedAtOnce, StoreCopied},
	CodeInternal:          {ServerAtFault},
	CodeSnapshotNeeded:    {SnapshotNeeded},
})

func byReason(lists map[Code][]Reason) map[Reason]Code {
	of := map[Reason]Code{}
	for code, list := range lists {
		for _, r := range list {
			of[r] = code
		}
	}
	return of
}

// Code is the code of every error with the reason.
func (r Reason) Code() Code {
	if code, ok := codes[r]; ok {
		return code
	}
	return CodeBadInput
}

// Error makes an error for the client, with one plain sentence. A request that is rate-limited, overdue or unavailable may be tried
// again, unless the store has been copied away.
func (r Reason) Error(format string, args ...any) *Error {
	code := r.Code()
	again := code == CodeRateLimited || code == CodeTimeout || code == CodeUnavailable
	return &Error{Code: code, Reason: r, Message: fmt.Sprintf(format, args...), Retryable: again && r != StoreCopied}
}
