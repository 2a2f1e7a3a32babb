import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a shop's page has heard, as its own script notes it. */
export interface Heard {
  events: { name: string; invoiceId: string; status: string | null }[]
  messages: unknown[]
  called: string[]
}

const SCRIPT = `
window.heard = { events: [], messages: [], called: [] }
for (const name of ['custody:status', 'custody:close']) addEventListener(name, ({ detail }) => heard.events.push({ name, ...detail }))
addEventListener('message', ({ data }) => heard.messages.push(data))`

/**
 * A shop of another origin, with the policy of a careful one: no inline script or style. It answers
 * to two names, so that one of them can be allowed and the other not.
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
    // Frames the page like another site that is not the widget.
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
