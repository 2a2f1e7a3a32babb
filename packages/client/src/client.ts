import { Approvals } from './approvals.ts'
import { CheckoutFace } from './checkout.ts'
import { Events } from './events.ts'
import { Invoices } from './invoices.ts'
import type { CustodyClientOptions } from './methods/base.ts'
import { ForwardingMethods } from './methods/forwarding.ts'
import { Policy } from './policy.ts'
import { Reserves } from './reserves.ts'
import { Service } from './service.ts'
import { Trading } from './trading.ts'
import { Webhooks } from './webhooks.ts'

/**
 * Client of the custody API. Every request, including each retry, is signed with its own token. Its
 * methods are in `methods`, one class per area, each of which extends the one before.
 *
 * Methods throw {@link CustodyError} if a request fails. Amounts are decimal strings in whole units
 * of the asset. Lists of type `Page` are numbered pages (`page`, `limit`); lists with `next`
 * continue with `after: next`.
 */
export class CustodyClient extends ForwardingMethods {
  readonly invoices: Invoices
  readonly trading: Trading = new Trading(this)
  readonly events: Events = new Events(this)
  readonly webhooks: Webhooks = new Webhooks(this)
  readonly checkout: CheckoutFace = new CheckoutFace(this)
  readonly reserves: Reserves
  readonly approvals: Approvals
  readonly policy: Policy
  readonly service: Service = new Service(this)

  /**
   * @throws AuthError if the private key cannot sign requests; VerificationError `TRUST` if the
   *   trust object is invalid; TypeError if `baseUrl` is not a plain origin
   */
  constructor(options: CustodyClientOptions) {
    super(options)
    this.invoices = new Invoices(this, this.checks)
    this.reserves = new Reserves(this, options.trust)
    this.approvals = new Approvals(this, options.trust)
    this.policy = new Policy(this, options.trust)
  }
}
