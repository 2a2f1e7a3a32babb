// A shop with a single page. It charges by invoice, and treats an order as paid only after a signed
// webhook.
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { CustodyClient, verifyWebhook, type Invoice } from '@custody/client'

const {
  CUSTODY_URL = 'http://127.0.0.1:8080',
  CUSTODY_API_KEY = '',
  CUSTODY_KEY = 'my-key.pem',
} = process.env
const { WEBHOOK_SECRET = '', PORT = '3000' } = process.env
const shop = `http://localhost:${PORT}`
const custody = new CustodyClient({
  baseUrl: CUSTODY_URL,
  apiKey: CUSTODY_API_KEY,
  privateKey: readFileSync(CUSTODY_KEY, 'utf8'),
})
/** A real shop keeps them in its database. */
const orders = new Map<string, { invoice: Invoice; isPaid: boolean }>()

async function read(request: IncomingMessage): Promise<Buffer> {
  let body = Buffer.alloc(0)
  for await (const chunk of request) {
    body = Buffer.concat([body, chunk as Buffer])
    if (body.length > 100_000) throw new Error('too long')
  }
  return body
}

const page = (
  body: string,
) => `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Hats</title><style>body{font:16px/1.5 system-ui;max-width:32rem;margin:4rem auto;padding:0 1rem}</style>
<script src="${CUSTODY_URL}/widget.js" async></script><h1>Hats</h1>${body}</html>`

/**
 * One hat, 25 USD. The order's number as `sequence_id` makes one invoice of it, however often the
 * answer is lost.
 */
async function order(): Promise<string> {
  const id = crypto.randomUUID()
  const invoice = await custody.invoices.create({
    fiat: 'USD',
    fiat_amount: '25',
    memo: 'One hat',
    order_id: id,
    sequence_id: id,
    success_url: `${shop}/order/${id}`,
    failed_url: shop,
  })
  orders.set(id, { invoice, isPaid: false })
  return id
}

function show(id: string): string {
  const order = orders.get(id)
  if (!order) return '<p>There is no such order.</p>'
  if (order.isPaid) return `<p id="state">Order ${id} is paid. The hat is on its way.</p>`
  const { inv_id: invoice, checkout_url: url } = order.invoice
  return `<p id="state">Order ${id} is open: one hat, 25 USD.</p>
    <custody-pay invoice="${invoice}"><a href="${url}">Pay now</a></custody-pay>
    <script>addEventListener('custody:close', () => location.reload())</script>`
}

createServer(async (request, response) => {
  const path = new URL(request.url ?? '/', shop).pathname
  if (request.method === 'POST' && path === '/webhook') {
    try {
      // The bytes as they came: they are what is signed.
      const { type, data } = verifyWebhook<Invoice>(
        request.headers,
        await read(request),
        WEBHOOK_SECRET,
      )
      const paid = orders.get(data.order_id ?? '')
      if (type === 'invoice.paid' && paid?.invoice.inv_id === data.inv_id) paid.isPaid = true
      response.writeHead(204).end()
    } catch (error) {
      response.writeHead(400).end(String(error))
    }
  } else if (request.method === 'POST' && path === '/order') {
    const location = await order().then(
      (id) => `/order/${id}`,
      (error: Error) => console.error(error.message),
    )
    response.writeHead(location ? 303 : 502, location ? { location } : {}).end()
  } else {
    const [, id] = /^\/order\/([\w-]+)$/.exec(path) ?? []
    const body =
      id === undefined
        ? '<form method="post" action="/order"><button>Order a hat, 25 USD</button></form>'
        : show(id)
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page(body))
  }
}).listen(Number(PORT), '127.0.0.1', () => console.log(`shop ${shop}`))
