import { BadRequestException, Body, Controller, Get, HttpCode, Inject, Param, Post } from '@nestjs/common';
import { parseAmount } from '../money/amount.js';
import { viewOf, type BalanceView } from './balance.js';
import { AmountDto, CustomerParams, PairParams, TransferDto } from './balance.dto.js';
import { BalanceService } from './balance.service.js';

@Controller('customers/:customerId')
export class BalanceController {
  constructor(@Inject(BalanceService) private readonly balances: BalanceService) {}

  @Get('balance')
  async balance(@Param() { customerId }: CustomerParams): Promise<BalanceView> {
    return viewOf(await this.balances.show(customerId));
  }

  @Get('with/:otherId')
  async both(@Param() { customerId, otherId }: PairParams): Promise<BalanceView[]> {
    return (await this.balances.showBoth(customerId, otherId)).map(viewOf);
  }

  @Post('credit')
  @HttpCode(200)
  async credit(@Param() { customerId }: CustomerParams, @Body() { amount }: AmountDto): Promise<BalanceView> {
    return viewOf(await this.balances.credit(customerId, parseAmount(amount)));
  }

  @Post('debit')
  @HttpCode(200)
  async debit(@Param() { customerId }: CustomerParams, @Body() { amount }: AmountDto): Promise<BalanceView> {
    return viewOf(await this.balances.debit(customerId, parseAmount(amount)));
  }

  @Post('transfer')
  @HttpCode(200)
  async transfer(
    @Param() { customerId }: CustomerParams,
    @Body() { to, amount }: TransferDto,
  ): Promise<{ from: BalanceView; to: BalanceView }> {
    if (to === customerId) {
      throw new BadRequestException('to must be another customer');
    }
    const [sender, receiver] = await this.balances.transfer(customerId, to, parseAmount(amount));
    return { from: viewOf(sender), to: viewOf(receiver) };
  }
}
