import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Events that the shop's own script recorded. */
export interface RecordedEvents {
  events: { name: string; invoiceId: string; status: string | null }[]
  messages: unknown[]
  called: string[]
}

const SCRIPT = `
window.recorded = { events: [], messages: [], called: [] }
for (const name of ['custody:status', 'custody:close']) addEventListener(name, ({ detail }) => recorded.events.push({ name, ...detail }))
addEventListener('message', ({ data }) => recorded.messages.push(data))`

/**
 * Starts a shop of another origin with a strict policy: no inline scripts or styles. It responds
 * under two host names, so that one can be allowed and the other not.
 * @param platform the checkout's origin
 */
export async function startShop(
  platform: string,
): Promise<{ allowed: string; stranger: string; stop: () => void }> {
  let stranger = ''
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://here')
    if (pathname === '/shop.js')
      return response.writeHead(200, { 'content-type': 'text/javascript' }).end(SCRIPT)
    const invoice = searchParams.get('invoice') ?? ''
    // Puts the page into a frame like a website that does not use the widget.
    const frame = searchParams.get('frame')
    const body =
      frame !== null
        ? `<iframe title="frame" width="600" height="500" src="${frame.replaceAll('"', '')}"></iframe>`
        : `<custody-pay invoice="${invoice}" id="link"><a href="${platform}/checkout/${invoice}">Pay now</a></custody-pay>
         <custody-pay invoice="${invoice}" id="button"></custody-pay><div id="tall"></div>`
    const policy = `default-src 'none'; script-src 'self' ${platform}; style-src 'self'; frame-src ${platform} ${stranger}`
    response
      .writeHead(200, { 'content-type': 'text/html', 'content-security-policy': policy })
      .end(
        `<!doctype html><html lang="de"><meta name="viewport" content="width=device-width"><title>Shop</title><script src="/shop.js"></script>${body}<script src="${platform}/widget.js" async></script>`,
      )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  stranger = `http://127.0.0.1:${port}`
  return {
    allowed: `http://localhost:${port}`,
    stranger,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
