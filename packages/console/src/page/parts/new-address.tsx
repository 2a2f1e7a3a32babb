import { useState } from 'preact/hooks'
import { sign } from '../api/sign.ts'
import type { Address } from '../api/types.ts'
import { useAction } from '../api/use.ts'
import { toast } from './announce.tsx'
import { Button, Dialog, onSubmit, Text } from './form.tsx'
import { ProblemNote } from './page.tsx'
import { tickerOf } from './values.tsx'

export function NewAddress({
  asset,
  onClose,
  onMade,
}: {
  asset: string
  onClose(): void
  onMade(address: Address): void
}) {
  const [label, setLabel] = useState('')
  const { isBusy, problem, run } = useAction()
  return (
    <Dialog title={`New ${tickerOf(asset)} address`} onClose={onClose}>
      <form
        class="stack"
        onSubmit={onSubmit(() =>
          run(async () => {
            onMade(
              await sign<Address>('POST', '/dac/v1/address', {
                asset,
                ...(label.trim() === '' ? {} : { label: label.trim() }),
              }),
            )
            toast('The address was created')
          }),
        )}
      >
        <Text
          label="Label"
          hint="For your own use, such as a customer number or an order. It does not leave the platform."
          value={label}
          onValue={setLabel}
          maxLength={100}
        />
        <ProblemNote problem={problem} />
        <Button kind="primary" type="submit" isBusy={isBusy}>
          Make the address
        </Button>
      </form>
    </Dialog>
  )
}
