import { Controller, Get, Inject, Param } from '@nestjs/common';
import { CustomerParams } from '../balance/balance.dto.js';
import { StatementService, type Statement } from './statement.service.js';

@Controller('customers/:customerId/statement')
export class StatementController {
  constructor(@Inject(StatementService) private readonly statements: StatementService) {}

  @Get()
  print(@Param() { customerId }: CustomerParams): Promise<Statement> {
    return this.statements.print(customerId);
  }
}
