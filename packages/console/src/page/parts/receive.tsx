import { QrCode } from '@custody/site/qr'
import { Id } from './show.tsx'

/**
 * An address to be paid to, as text and for a camera.
 * @param address what the code holds: a payment URI too
 * @param shown the address alone
 */
export function PayTo({ address, shown = address, label }: { address: string; shown?: string; label: string }) {
  return (
    <div class="receive">
      <div class="qr-box">
        <QrCode text={address} label={label} />
      </div>
      <Id value={shown} label="address" isWhole />
    </div>
  )
}
