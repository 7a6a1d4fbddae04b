// Pages that are opened as files (file://) may start no worker, which the search box needs. This class takes the worker's place there:
// it runs the script in a hidden frame and passes messages both ways.
if (location.protocol === "file:") {
  // The search script asks its parent for this name to know that it is in a frame.
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = "<!doctype html><title>search</title>"
      this.frame.addEventListener("load", () => this.begin(new URL(url, document.baseURI).href), {once: true})
      document.body.append(this.frame)
    }

    begin(url) {
      const inside = this.frame.contentWindow
      const add = (source) =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement("script")
          script.src = source
          script.onload = resolve
          script.onerror = reject
          inside.document.head.append(script)
        })
      inside.importScripts = (...sources) => sources.reduce((before, one) => before.then(() => add(one)), Promise.resolve())
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", {data}))
      add(url).then(() => {
        this.ready = true
        this.waiting.splice(0).forEach((data) => this.postMessage(data))
      })
    }

    postMessage(data) {
      if (!this.ready) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}))
    }
  }
}
