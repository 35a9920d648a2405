package api

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/weirstream/weir/internal/services"
)

// browserPatience bounds the whole test; every wait in it is for something that the page shows.
const browserPatience = 90 * time.Second

// screenshotsEnv names a folder for screenshots of the page.
const screenshotsEnv = "WEIR_TEST_SCREENSHOTS"

// browser is a page in a real Chromium, and what it complained about.
type browser struct {
	ctx context.Context
	t   *testing.T

	mu         sync.Mutex
	complaints []string
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(services.Chromium(t)), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	bounded, cancel := context.WithTimeout(context.Background(), browserPatience)
	allocator, cancelAllocator := chromedp.NewExecAllocator(bounded, options...)
	ctx, cancelPage := chromedp.NewContext(allocator)
	b := &browser{ctx: ctx, t: t}
	b.run()
	messages := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			if message.IsException() || message.Type == "error" || message.Type == "warning" {
				b.complain(message.String())
			}
		}
	})
	t.Cleanup(func() {
		cancelPage()
		cancelAllocator()
		cancel()
		reading.Wait()
	})
	return b
}

func (b *browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
}

// takeComplaints returns what the console showed since the last call.
func (b *browser) takeComplaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.complaints
	b.complaints = nil
	return taken
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v; console: %q", err, b.takeComplaints())
	}
}

// evaluate returns the value of a JavaScript expression.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v; console: %q", expression, err, b.takeComplaints())
	}
	return value
}

// until waits for a JavaScript expression to become true, for a part of the browser's patience.
func (b *browser) until(expression string) {
	b.t.Helper()
	const patienceMS, stepMS = "20000", "25"
	if !evaluate[bool](b, `new Promise((done) => {
		const end = Date.now() + `+patienceMS+`;
		const look = () => (`+expression+`) ? done(true) : Date.now() > end ? done(false) : setTimeout(look, `+stepMS+`);
		look();
	})`) {
		b.t.Fatalf("waited in vain for %s; console: %q; the page shows:\n%s", expression, b.takeComplaints(), evaluate[string](b, "document.body.innerText"))
	}
}

func text(id string) string { return `document.getElementById("` + id + `").textContent` }

// screenshot keeps a picture where the environment asks for it.
func (b *browser) screenshot(name string, width, height int64) {
	folder := os.Getenv(screenshotsEnv)
	b.run(chromedp.EmulateViewport(width, height))
	if evaluate[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
		b.t.Errorf("the page is wider than a window of %d pixels", width)
	}
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(folder+"/"+name+".png", picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// TestPage uses the page as a person does.
func TestPage(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	n := newTestNode(t, nil)
	b := openBrowser(t)
	b.run(chromedp.Navigate(n.server.URL + "/"))
	b.until(text("status") + ` === "ready"`)
	b.until(`document.querySelector("#tile-accepted").textContent.includes("0 since the start")`)
	b.until(`document.querySelectorAll("#streams tbody tr").length === 3`)
	b.until(`document.querySelectorAll("#counters article").length === 2`)

	for i := range 40 {
		n.clock.Advance(1000) // rates are events by the node's clock
		n.post(strings.Replace(strings.Replace(eventOf(-i, "u1"), "click", "impression", 1), `"user"`, `"ad":"<b>a9</b>","user"`, 1))
	}
	b.until(`document.querySelector("#tile-accepted").textContent.includes("40 since the start")`)
	b.until(`!document.querySelector("#tile-accepted .number").textContent.startsWith("0 ")`)

	b.run(
		chromedp.SendKeys(`#key-0`, "u1"), chromedp.SendKeys(`#key-1`, "<b>a9</b>"), chromedp.Click(`#ask button`))
	b.until(`document.querySelectorAll("#windows tr").length === 3`)
	b.until(`[...document.querySelectorAll("#windows td")].map((e) => e.textContent).join(" ") === "1m 40 40 yes 60m 40 40 yes 7d 40 40 yes"`)
	b.until(text("expiry") + `.startsWith("The next event leaves a window in ")`)
	b.screenshot("wide", 1280, 900)
	b.screenshot("narrow", 400, 800)

	n.clock.Advance(120_000) // the look-up is asked again: the minute is over
	b.until(`document.querySelector("#windows tr").textContent === "1m00yes"`)
	if complaints := b.takeComplaints(); len(complaints) > 0 {
		t.Errorf("the console shows %q", complaints)
	}

	n.be("draining") // the look-up is now refused with 503, which the console says
	b.until(text("banner") + `.startsWith("The node is draining")`)
	b.until(`!document.getElementById("banner").hidden && !document.getElementById("refused").hidden`)
	n.be("")
	b.until(`document.getElementById("banner").hidden`)
	n.server.CloseClientConnections()
	n.server.Listener.Close()
	n.server.CloseClientConnections()
	b.until(text("status") + ` === "unreachable" && !document.getElementById("banner").hidden`)
	b.screenshot("unreachable", 1280, 900)
}

// TestPageDark looks at the page by night, with a counter chosen that has one key part.
func TestPageDark(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	n := newTestNode(t, nil)
	n.post(eventOf(1, "u1"), eventOf(2, "u2"))
	b := openBrowser(t)
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, dark); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.Navigate(n.server.URL + "/"))
	b.until(text("status") + ` === "ready"`)
	b.until(`document.querySelectorAll("#fields input").length === 2`)
	b.run(chromedp.SetValue(`#counter`, "total"), chromedp.Evaluate[chromedp.Void](`document.getElementById("counter").dispatchEvent(new Event("change"))`))
	b.until(`document.querySelectorAll("#fields input").length === 1`)
	b.run(chromedp.SendKeys(`#key-0`, "a9\r"))
	b.until(`document.querySelectorAll("#windows tr").length === 1`)
	b.screenshot("dark", 1280, 900)
	if complaints := b.takeComplaints(); len(complaints) > 0 {
		t.Errorf("the console shows %q", complaints)
	}
}
