package suite

// SameAnswers is how [RunApp] compares the baseline and Kith.
var SameAnswers = sameAnswers
