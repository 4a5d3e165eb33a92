package limits_test
import ("testing";"time";"fmt";"strconv";"strings";"kith/graph/limits")
func TestEdge(t *testing.T){
 p:=newPrepare(t, limits.Limits{Overlaps:1<<40, Visits:1<<40})
 hostile["200 frags"]="{ viewer {" + repeat(200, func(i int) string { return " ...F" + strconv.Itoa(i) }) + "} }" +
			repeat(200, func(i int) string { return fmt.Sprintf(" fragment F%d on User { id name }", i) })
 hostile["1000 same"]="{ viewer {" + strings.Repeat(" id",1000)+"}}"
 hostile["600 same user(id)"]="{" + strings.Repeat(" user(id:1){id}",350)+"}"
 for n,q:=range hostile { s:=time.Now(); e:=p(q,nil); d:=time.Since(s); m:=""; if len(e)>0 {m=e[0].Message}; if len(m)>60 {m=m[:60]}
  if d>5*time.Millisecond {t.Logf("%v %s %s",d,n,m)} }
}
