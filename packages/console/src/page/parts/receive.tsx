import { QrCode } from '@custody/site/qr'
import { useState } from 'preact/hooks'
import { assetNames } from '../api/assets.ts'
import type { Address } from '../api/types.ts'
import { Derivation } from './derivation.tsx'
import { Note } from './page.tsx'
import { Copy, Id, tickerOf, Time } from './values.tsx'

/**
 * A deposit address as text and as a QR code.
 * @param address content of the code, which may be a payment URI
 * @param shown the address alone
 */
export function PayTo({
  address,
  shown = address,
  label,
}: {
  address: string
  shown?: string
  label: string
}) {
  return (
    <div class="receive">
      <div class="qr-box">
        <QrCode text={address} label={label} />
      </div>
      <Id value={shown} label="address" isWhole />
    </div>
  )
}

/** Details of an address for payers and auditors. */
export function AddressFacts({ address }: { address: Address }) {
  const [isUri, setUri] = useState(address.payment_uri !== null)
  const text = isUri && address.payment_uri !== null ? address.payment_uri : address.address
  const asset = assetNames.value.get(address.asset)
  return (
    <>
      <div class="receive">
        <div class="qr-box">
          <QrCode text={text} label={isUri ? 'Payment URI' : 'Address'} />
        </div>
        {address.payment_uri === null ? null : (
          <div class="switch" role="group" aria-label="What the code holds">
            <button type="button" aria-pressed={isUri} onClick={() => setUri(true)}>
              Payment URI
            </button>
            <button type="button" aria-pressed={!isUri} onClick={() => setUri(false)}>
              Address only
            </button>
          </div>
        )}
      </div>
      <dl class="lines">
        <div>
          <dt>Address</dt>
          <dd>
            <Id value={address.address} label="address" isWhole />
          </dd>
        </div>
        {address.address_tag === null ? null : (
          <div>
            <dt>Tag</dt>
            <dd>
              <Id value={address.address_tag} label="tag" isWhole />
            </dd>
          </div>
        )}
        {address.payment_uri === null ? null : (
          <div>
            <dt>Payment URI</dt>
            <dd>
              <Copy text={address.payment_uri} label="payment URI" word="Copy" />
            </dd>
          </div>
        )}
        <div>
          <dt>Path</dt>
          <dd>
            <code>{address.path.join(' / ')}</code>
          </dd>
        </div>
        <div>
          <dt>Made</dt>
          <dd>
            <Time at={address.created_at} isLong />
          </dd>
        </div>
      </dl>
      {address.address_tag === null ? null : (
        <Note tone="warn">
          <p>Without the tag, a payment cannot be told apart from others’.</p>
        </Note>
      )}
      <p class="muted">
        Send only {tickerOf(address.asset)} here, and only on {asset?.network ?? 'its own network'}.
      </p>
      <Derivation address={address} />
    </>
  )
}
